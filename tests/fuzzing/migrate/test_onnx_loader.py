"""Models read from files that may be anything, with what lies outside of them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import onnx.helper
import onnx.numpy_helper
import pytest

from fuzzing.migrate import onnx_loader
from fuzzing.migrate.onnx_loader import NO_DATA, TOO_LARGE, read_model
from fuzzing.migrate.onnx_single_nodes import UnsupportedModelError

WEIGHTS = np.arange(100, dtype=np.float32)


def save(path: Path, location: str = "w.data", *, inside: bool = False) -> Path:
    """A model that adds weights to its input, which lie in a file; `inside`: in a subgraph's Constant."""
    path.parent.mkdir(parents=True, exist_ok=True)
    info = onnx.helper.make_tensor_value_info
    weights = onnx.numpy_helper.from_array(WEIGHTS, "w")
    x, z = (info(name, onnx.TensorProto.FLOAT, [100]) for name in "xz")
    nodes = [onnx.helper.make_node("Add", ["x", "w"], ["z"])]
    if inside:
        c = info("c", onnx.TensorProto.BOOL, [])
        constant = onnx.helper.make_node("Constant", [], ["w"], value=weights)
        body = onnx.helper.make_graph([constant, *nodes], "body", [], [z])
        branches = onnx.helper.make_node("If", ["c"], ["z"], then_branch=body, else_branch=body)
        graph = onnx.helper.make_graph([branches], "g", [x, c], [z])
    else:
        graph = onnx.helper.make_graph(nodes, "g", [x], [z], [weights])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    (path.parent / location).parent.mkdir(parents=True, exist_ok=True)
    onnx.save(
        model, path, save_as_external_data=True, location=location, size_threshold=0, convert_attribute=True
    )
    return path


def refused(path: Path) -> tuple[str, str]:
    with pytest.raises(UnsupportedModelError) as caught:
        read_model(path)
    return str(caught.value), caught.value.detail


@pytest.mark.parametrize("location", ["w.data", "weights/w.bin"])
@pytest.mark.parametrize("inside", [False, True])
def test_what_lies_outside_is_taken_in(tmp_path: Path, location: str, inside: bool) -> None:
    model = read_model(save(tmp_path / "m.onnx", location, inside=inside))
    assert WEIGHTS.tobytes() in model.SerializeToString()
    assert list(onnx_loader._external(model)) == []


def test_links_are_followed_as_a_cache_of_downloads_has_them(tmp_path: Path) -> None:
    save(tmp_path / "blobs" / "m.onnx", "w.data")
    (tmp_path / "blobs" / "m.onnx").rename(tmp_path / "blobs" / "aaaa")
    (tmp_path / "blobs" / "w.data").rename(tmp_path / "blobs" / "bbbb")
    shown = tmp_path / "snapshot"
    shown.mkdir()
    (shown / "m.onnx").symlink_to("../blobs/aaaa")
    (shown / "w.data").symlink_to("../blobs/bbbb")
    assert WEIGHTS.tobytes() in read_model(shown / "m.onnx").SerializeToString()


@pytest.mark.parametrize("location", ["../w.data", "/etc/passwd", ""])
def test_nothing_is_read_from_elsewhere(tmp_path: Path, location: str) -> None:
    path = save(tmp_path / "deep" / "m.onnx", "w.data")
    model = onnx.load(path, load_external_data=False)
    for entry in model.graph.initializer[0].external_data:
        if entry.key == "location":
            entry.value = location
    path.write_bytes(model.SerializeToString())
    (tmp_path / "w.data").write_bytes(WEIGHTS.tobytes())
    assert refused(path) == (NO_DATA, f"{location!r} is no place beside the model")


def test_data_that_are_missing_or_cut_off_are_told(tmp_path: Path) -> None:
    path = save(tmp_path / "m.onnx")
    os.truncate(tmp_path / "w.data", 17)
    assert refused(path)[0] == NO_DATA
    (tmp_path / "w.data").unlink()
    assert refused(path) == (NO_DATA, "w.data: No such file or directory")


@pytest.mark.parametrize("stated", [True, False])
def test_what_is_too_large_is_refused_before_it_is_read(tmp_path: Path, stated: bool) -> None:
    path = save(tmp_path / "m.onnx")
    model = onnx.load(path, load_external_data=False)
    del model.graph.initializer[0].external_data[1:]
    if stated:
        model.graph.initializer[0].external_data.add(key="length", value=str(3 << 30))
    path.write_bytes(model.SerializeToString())
    os.truncate(tmp_path / "w.data", 3 << 30)  # sparse: it takes no space
    assert refused(path) == (TOO_LARGE, "3072 MiB with its external data")
    os.truncate(path, 5 << 30)
    assert refused(path) == (TOO_LARGE, "5120 MiB")
