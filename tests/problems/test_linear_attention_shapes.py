"""Held-out recurrences too large for a CPU: their shapes fit together, without any values."""

import pytest
import torch
from torch._subclasses import FakeTensorMode

from tests.problems.loading import load, tensors

# Loops over hundreds of tokens take long even without values.
EVERY_SHAPE = [
    *((number, f"heldout_{k}") for number in (63, 64, 65, 67, 70) for k in (1, 2, 3)),
    *((62, "heldout_2"), (66, "heldout_2"), (73, "heldout_1"), (73, "heldout_3")),
]
# Which input has the first output's shape.
TWIN = {63: 0, 65: 0, 66: 1, 67: 0, 70: 2, 73: 2}


@pytest.mark.parametrize(("number", "workload"), EVERY_SHAPE)
def test_a_held_out_workload_gives_outputs_of_its_own_sizes(number: int, workload: str) -> None:
    with FakeTensorMode():
        inputs = load(number).make_inputs(workload, "cpu")
        outputs = tensors(load(number).reference(*inputs))
    first = tuple(outputs[0].shape)
    if number == 62:
        batch, heads, n_tokens, width = inputs[2].shape
        assert first == (batch, n_tokens, heads, width)
    elif number == 64:
        assert first == tuple(inputs[0].flatten(2).shape)
    else:
        assert first == tuple(inputs[TWIN[number]].shape)
    assert outputs[0].dtype is (torch.float32 if number in (66, 67) else torch.bfloat16)


@pytest.mark.parametrize(
    ("number", "workload", "n_tokens"),
    [(68, "heldout_1", 3_001), (69, "heldout_1", 1_500), (66, "heldout_1", 5_000)],
)
def test_long_held_out_workloads_are_as_long_as_specified(
    number: int, workload: str, n_tokens: int
) -> None:
    with FakeTensorMode():
        inputs = load(number).make_inputs(workload, "cpu")
    assert inputs[1].shape[1] == n_tokens
