"""What a result is made of, and whether it is what the reference's is made of."""

import os
from collections import namedtuple
from typing import Any

import pytest
import torch

from runner.grader import blocks, forms, structure
from runner.grader.faults import KernelError
from runner.protocol import Outcome


def form_of(value: Any, inputs: tuple[Any, ...] = ()) -> forms.Form:
    return forms.describe(value, inputs)[0]


def outcome_of(found: Any, expected: Any) -> Outcome | None:
    try:
        structure.check(form_of(found), form_of(expected))
    except KernelError as fault:
        return fault.outcome
    return None


ROW = torch.zeros(3)
Pair = namedtuple("Pair", "first second")


@pytest.mark.parametrize(
    ("found", "expected", "outcome"),
    [
        (ROW, torch.ones(3), None),
        ((ROW, [ROW]), (ROW, [ROW]), None),
        ({"a": ROW}, {"a": ROW}, None),
        ((ROW,), ROW, Outcome.WRONG_STRUCTURE),
        ([ROW, ROW], (ROW, ROW), Outcome.WRONG_STRUCTURE),
        ((ROW,), (ROW, ROW), Outcome.WRONG_STRUCTURE),
        ({"b": ROW}, {"a": ROW}, Outcome.WRONG_STRUCTURE),
        (Pair(ROW, ROW), (ROW, ROW), Outcome.WRONG_STRUCTURE),
        (None, ROW, Outcome.WRONG_STRUCTURE),
        (3.0, ROW, Outcome.WRONG_STRUCTURE),
        (ROW.numpy(), ROW, Outcome.WRONG_STRUCTURE),
        (torch.zeros(3, device="meta"), ROW, Outcome.WRONG_STRUCTURE),
        (ROW.double(), ROW, Outcome.WRONG_DTYPE),
        (ROW[:2], ROW, Outcome.WRONG_SHAPE),
        (ROW[None], ROW, Outcome.WRONG_SHAPE),
        ((ROW, ROW.int()), (ROW, ROW), Outcome.WRONG_DTYPE),
    ],
)
def test_containers_dtypes_and_shapes_must_be_the_references(
    found: Any, expected: Any, outcome: Outcome | None
) -> None:
    assert outcome_of(found, expected) is outcome


def test_a_deep_or_endless_result_is_described_in_bounds() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert outcome_of(endless, [ROW]) is Outcome.WRONG_STRUCTURE
    assert outcome_of([ROW] * 10_000, [ROW]) is Outcome.WRONG_STRUCTURE


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"kind": "tensor"},
        {"kind": "tensor", "dtype": "float32", "shape": [3]},
        {"kind": "tuple"},
        [],
        7,
    ],
)
def test_a_description_that_our_child_never_writes_is_tampering(form: Any) -> None:
    expected = form_of((ROW,)) if form == {"kind": "tuple"} else form_of(ROW)
    with pytest.raises(KernelError) as caught:
        structure.check(form, expected)
    assert caught.value.outcome is Outcome.TAMPERING


def test_paths_tell_where_a_tensor_stands() -> None:
    form = form_of((ROW, [ROW, {"k": ROW}]))
    assert forms.paths(form) == ["output[0]", "output[1][0]", "output[1][1]['k']"]
    assert forms.paths(form_of(ROW)) == ["output"]


def test_shared_memory_is_seen_through_views() -> None:
    inputs = (torch.zeros(4, 4), 2.5, torch.zeros(4, 4))
    form = form_of((inputs[2].T[1:], inputs[0].clone(), inputs[2].view(-1)[-1:]), inputs)
    assert [leaf["inputs"] for leaf in forms.tensors_of(form)] == [[2], [], [2]]
    assert [leaf["outputs"] for leaf in forms.tensors_of(form)] == [[], [], [0]]


def test_parts_of_one_buffer_that_do_not_meet_are_apart() -> None:
    buffer = torch.zeros(8)
    form = form_of((buffer[:4], buffer[4:]))
    structure.check_fresh(form, form_of((ROW, ROW.clone())))


def test_memory_may_be_shared_only_where_the_references_is() -> None:
    cache = torch.zeros(4)
    in_place = form_of(cache, (cache,))
    fresh = form_of(cache.clone(), (cache,))
    structure.check_fresh(in_place, in_place)
    structure.check_fresh(fresh, in_place)
    with pytest.raises(KernelError, match=r"output shares memory with input 0") as caught:
        structure.check_fresh(in_place, fresh)
    assert caught.value.outcome is Outcome.WRONG_STRUCTURE
    with pytest.raises(KernelError, match=r"output\[1\] shares memory with output 0"):
        structure.check_fresh(form_of((ROW, ROW)), form_of((ROW, ROW.clone())))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.bool, torch.int64, torch.float8_e4m3fn])
def test_a_block_is_the_same_memory_on_both_sides(dtype: torch.dtype) -> None:
    ours = blocks.create(6 * dtype.itemsize, device="cpu")
    assert not ours.tensor.any()
    assert ours.fd is not None
    theirs = blocks.attach(6 * dtype.itemsize, device="cpu", ticket="", fd=os.dup(ours.fd))
    blocks.as_tensor(theirs, dtype=dtype, shape=[2, 3]).fill_(1)
    assert (blocks.as_tensor(ours, dtype=dtype, shape=[2, 3]).float() == 1).all()
    ours.close()
    theirs.close()


def test_a_block_cannot_be_cut_short_by_the_other_side() -> None:
    block = blocks.create(4096, device="cpu")
    assert block.fd is not None
    for size in (0, 8192):
        with pytest.raises(PermissionError):
            os.ftruncate(block.fd, size)
    block.close()


def test_an_empty_tensor_travels_too() -> None:
    block = blocks.create(0, device="cpu")
    assert blocks.as_tensor(block, dtype=torch.float32, shape=[0, 4]).shape == (0, 4)
    block.close()
