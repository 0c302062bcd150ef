"""Titles as people read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzing.triage.title import MAX_TITLE, choose_subject, name_part, shorten, title

LONG = "Reshape(MatMul(Concat(#2059b55e76f1)))"
OPERATORS = ("Concat", "Constant", "If", "MatMul", "Reshape", "Split")


@pytest.mark.parametrize(
    ("pattern", "message", "subject"),
    [
        ("Reshape(Transpose)", "Split-20 failed", "Reshape(Transpose)"),
        (LONG, "-- Split-20 with a message:", "Split"),
        (LONG, "While validating ONNX node '<Node(Split): y>'", "Split"),
        (LONG, "Error converting operator Split, with inputs", "Split"),
        (LONG, "running MatMul node. opset1::Constant Constant_9, opset1::Split Split_3", "MatMul, Split"),
        (LONG, "If the Split is Constant, Reshape it", "Reshape(…)"),
        (LONG, "", "Reshape(…)"),
        ("If[Identity; Split | Split](Equal(Constant, Size))", "", "If(…)"),
        ("", "", ""),
    ],
)
def test_the_subject_is_the_pattern_or_what_is_complained_of(
    pattern: str, message: str, subject: str
) -> None:
    assert choose_subject(pattern, OPERATORS, message) == subject


@pytest.mark.parametrize(
    ("call", "part", "subject"),
    [
        ("torch.std", "var", "torch.std (var)"),
        ("torch.nn.functional.max_pool1d", "max_pool2d_with_indices", "max_pool1d (max_pool2d_with_indices)"),
        ("torch.nn.functional.lp_pool2d", "pow(mul(abs(avg_pool2d(pow))))", "torch.nn.functional.lp_pool2d"),
        ("torch.erfinv", "erfinv", "torch.erfinv"),
        ("torch.erfinv", "", "torch.erfinv"),
        ("torch.linalg.cross", "linalg_cross", "torch.linalg.cross"),
        ("torch.Tensor.index_add_", "index_add", "torch.Tensor.index_add_"),
    ],
)
def test_the_part_of_a_call_stands_beside_it_where_there_is_room(call: str, part: str, subject: str) -> None:
    assert name_part(call, part) == subject


def test_where_too_little_would_be_left_of_what_is_said_the_place_goes() -> None:
    output = "Total length of splits: N must match the length of the chosen axis: N"
    place = "variadic_split_shape_inference.hpp"
    assert title("ONNX", "Split", "conversion fails", output, place) == (
        "[ONNX] Split: conversion fails: Total length of splits: N must match the length of the chosen axis…"
    )
    assert title("ONNX", "Split", "conversion fails", output, "split.hpp") == (
        "[ONNX] Split: conversion fails: Total length of splits: N must match the length of the… (split.hpp)"
    )


def test_a_word_that_is_longer_than_the_title_is_left_out() -> None:
    assert title("ONNX", "Op", "conversion fails", "a" * 300, "c.cpp") == (
        "[ONNX] Op: conversion fails (c.cpp)"
    )


@given(st.text(max_size=300), st.integers(1, 120))
def test_no_word_is_cut_in_two(text: str, room: int) -> None:
    kept = shorten(text, room)
    assert len(kept) <= room
    if kept != text:
        assert text.startswith(kept.removesuffix("…"))
        rest = text[len(kept) - 1 :]
        assert not kept or not (kept[-2:-1].isalnum() and rest[:1].isalnum())


@given(*[st.text(max_size=150)] * 5)
def test_any_title_fits_on_one_printable_line(
    frontend: str, subject: str, what: str, output: str, where: str
) -> None:
    made = title(frontend, subject, what, output, where)
    assert made.isprintable()
    assert len(made) <= MAX_TITLE
