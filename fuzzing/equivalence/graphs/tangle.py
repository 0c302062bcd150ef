"""Applies rewrites to a model: some at random, or given steps again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx
from onnx import ModelProto

from fuzzing.equivalence.graphs import rewrite, saturation
from fuzzing.equivalence.graphs.editor import Editor
from fuzzing.rng import Rng

#: How often a place and a rewrite are drawn for each step that is wanted, as most rewrites fit few nodes.
_ATTEMPTS = 40
#: The step to the most tangled form of a model's first output.
SATURATION = "saturation"


@dataclass(frozen=True)
class Step:
    """A rewrite of the node whose first output has this name; SATURATION needs no name."""

    rewrite: str
    output: str = ""


def apply_steps(model: ModelProto, steps: Sequence[Step]) -> tuple[ModelProto, list[Step]]:
    """The model after these steps, without those that do not apply any more; and the steps that did."""
    done: list[Step] = []
    for step in steps:
        changed = _apply(model, step)
        if changed is not None:
            model = changed
            done.append(step)
    return model, done


def tangle(model: ModelProto, rng: Rng, count: int) -> tuple[ModelProto, list[Step]]:
    """The model after at most `count` random steps, and the steps."""
    names, steps = rewrite.names(), list[Step]()
    for _ in range(_ATTEMPTS * count):
        if len(steps) == count:
            break
        node = rng.choice(list(model.graph.node))
        fitting = [name for name in names if rewrite.applicable(rewrite.get(name), node)]
        # Rewrites of this operator are as likely as all that fit any.
        own = [name for name in fitting if rewrite.get(name).operators]
        if not fitting or not node.output:
            continue
        step = Step(rng.choice(own if own and rng.chance(0.6) else fitting), node.output[0])
        changed = _apply(model, step)
        if changed is not None:
            model = changed
            steps.append(step)
    return model, steps


def _apply(model: ModelProto, step: Step) -> ModelProto | None:
    """The model after a step; None if its rewrite does not apply, or the result is no valid model."""
    if step.rewrite == SATURATION:
        forms = saturation.saturate(model, model.graph.output[0].name)
        return forms and forms[1]
    found = rewrite.get(step.rewrite)
    node = next((node for node in model.graph.node if node.output and node.output[0] == step.output), None)
    if node is None or not rewrite.applicable(found, node):
        return None
    editor = Editor(model)
    new = found.apply(editor, node)
    if new is None:
        return None
    editor.replace(node, new)
    try:
        onnx.checker.check_model(editor.model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return None  # an operator that this opset has for fewer types
    return editor.model
