"""Applies rewrites to a model: some at random, or given steps again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx
import onnx.version_converter
from onnx import ModelProto

from fuzzing.equivalence.graphs import rewrite, saturation
from fuzzing.equivalence.graphs.editor import NOTHING, Editor, Given
from fuzzing.rng import Rng

#: How often a place and a rewrite are drawn for each step that is wanted, as most rewrites fit few nodes.
_ATTEMPTS = 40
#: Share of the models that are converted to another opset.
_CONVERTED = 0.2
#: The step to the most tangled form of a model's first output.
SATURATION = "saturation"
#: The step to another opset.
OPSET = "opset"
#: From the opset in which reductions take their axes as inputs to the last that every compiler reads.
OPSETS = (18, 22)


@dataclass(frozen=True)
class Step:
    """A rewrite of the node whose first output has this name.

    SATURATION needs no name; OPSET has the number of the opset in its place.
    """

    rewrite: str
    output: str = ""


def apply_steps(
    model: ModelProto, steps: Sequence[Step], given: Given = NOTHING
) -> tuple[ModelProto, list[Step]]:
    """The model after these steps, without those that do not apply any more; and the steps that did.

    given  the values of the model's inputs
    """
    done: list[Step] = []
    for step in steps:
        changed = _apply(model, step, given)
        if changed is not None:
            model = changed
            done.append(step)
    return model, done


def tangle(model: ModelProto, rng: Rng, count: int, given: Given = NOTHING) -> tuple[ModelProto, list[Step]]:
    """The model after at most `count` random steps, and the steps."""
    names, steps = rewrite.names(), list[Step]()
    if rng.chance(_CONVERTED):
        # First, as the converter knows no functions and few operators' newest forms.
        model, steps = apply_steps(model, [Step(OPSET, str(rng.between(*OPSETS)))])
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
        changed = _apply(model, step, given)
        if changed is not None:
            model = changed
            steps.append(step)
    return model, steps


def _apply(model: ModelProto, step: Step, given: Given) -> ModelProto | None:
    """The model after a step; None if its rewrite does not apply, or the result is no valid model."""
    if step.rewrite == SATURATION:
        forms = saturation.saturate(model, model.graph.output[0].name)
        return forms and forms[1]
    if step.rewrite == OPSET:
        return _convert(model, int(step.output))
    found = rewrite.get(step.rewrite)
    node = next((node for node in model.graph.node if node.output and node.output[0] == step.output), None)
    if node is None or not rewrite.applicable(found, node):
        return None
    editor = Editor(model, given)
    new = found.apply(editor, node)
    if new is None:
        return None
    editor.replace(node, new)
    return editor.model if _is_valid(editor.model) else None  # an opset may have an operator for fewer types


def _convert(model: ModelProto, opset: int) -> ModelProto | None:
    """The model in another opset; None if it is in this one, or ONNX cannot convert it."""
    if any(item.version == opset for item in model.opset_import if item.domain in ("", "ai.onnx")):
        return None
    try:
        changed: ModelProto = onnx.version_converter.convert_version(model, opset)
    except (onnx.version_converter.ConvertError, RuntimeError):
        return None
    return changed if _is_valid(changed) else None


def _is_valid(model: ModelProto) -> bool:
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return False
    return True
