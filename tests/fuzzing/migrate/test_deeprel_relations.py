"""The command, as people use it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzzing.cases import Corpus
from fuzzing.migrate.deeprel_relations import main
from tests.fuzzing.generate.deeprel.deeprel_helpers import X, recorded

pytestmark = pytest.mark.compiler_torch_eager


def test_a_corpus_becomes_relations_that_can_be_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus, relations = tmp_path / "corpus", tmp_path / "relations.jsonl"
    for place in (0, 1):
        Corpus(corpus).add(recorded("torch.amax", X, place))
    assert main(["run", "--corpus", str(corpus), "--relations", str(relations), "--rounds", "1"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("2 recorded calls of 1 APIs; 10 candidate pairs, 10 of them run")
    assert "10 APIs newly covered" in out
    assert "collecting the recorded calls" in err
    assert main(["show", "torch.max", "--relations", str(relations)]) == 0
    assert capsys.readouterr().out == (
        f"torch.max: 1 relations in {relations}\n"
        "  value     2 of 2    0.88  torch.amax (whose calls it takes)\n"
    )


def test_show_finds_the_relations_of_one_api(capsys: pytest.CaptureFixture[str]) -> None:
    """From torch's own samples. A golden text: what people read."""
    assert main(["show", "torch.nn.functional.relu"]) == 0
    assert capsys.readouterr().out == (
        "torch.nn.functional.relu: 10 of 10 candidates hold, on 6 recorded calls\n"
        "  value     6 of 6    0.88  torch.Tensor.relu\n"
        "  value     6 of 6    0.88  torch.relu\n"
        "  value     6 of 6    0.66  torch.nn.functional.relu_\n"
        "  value     6 of 6    0.53  torch.Tensor.relu_\n"
        "  status    6 of 6    0.89  torch.nn.functional.relu6\n"
        "  status    5 of 6    0.59  torch.nn.functional.selu\n"
        "  status    5 of 6    0.55  torch.nn.functional.silu\n"
        "  status    5 of 6    0.54  torch.nn.functional.elu\n"
        "  status    5 of 6    0.52  torch.nn.functional.celu\n"
        "  status    5 of 6    0.51  torch.nn.functional.rrelu\n"
    )


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        (["show", "torch.nn.functional.reluu"], "did you mean torch.nn.functional.relu"),
        (["show", "relu"], "names are such as torch.nn.functional.relu"),
        (["show", "torch.relu"], "hold no call of torch.relu; only a whole run"),
        (["show", "torch.amax", "--relations", "{folder}/none"], "cannot read {folder}/none"),
        (["show", "torch.amax", "--relations", "{folder}/odd"], "holds no relations"),
        (["run", "--corpus", "{folder}"], "{folder} holds no call of torch; fill it with"),
    ],
)
def test_mistakes_are_told_with_what_to_do(
    arguments: list[str], output: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "odd").write_text("{}\n")
    assert main([part.format(folder=tmp_path) for part in arguments]) == 2
    assert output.format(folder=tmp_path) in capsys.readouterr().err
