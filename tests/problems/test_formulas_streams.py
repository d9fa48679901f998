"""Problems that merge several streams of a token, against loops over tokens in float64."""

import math

import pytest
import torch
from torch.nn import functional

from tests.problems.loading import draw, load, relative_error, upcast


def root_mean_square(row: torch.Tensor, *, least: float = 0.0) -> float:
    return math.sqrt(max(math.fsum(x * x for x in row.tolist()) / row.numel(), least))


def test_a_collapsed_token_is_the_mean_of_three_rows_of_equal_size() -> None:
    hidden, *weights, eps = upcast(draw(40))
    output = load(40).reference(hidden, *weights, eps)
    for token in ((0, 0), (1, 7), (1, 31)):
        total = hidden[0][token].clone()
        size = root_mean_square(total)
        for stream, weight in zip(hidden[1:], weights, strict=True):
            row = weight @ stream[token]
            total += row / root_mean_square(row, least=eps) * size
        torch.testing.assert_close(output[token], total / 3, rtol=1e-12, atol=1e-12)


def test_a_faint_token_would_be_blown_up_without_the_epsilon() -> None:
    *inputs, eps = upcast(draw(40))
    right = load(40).reference(*inputs, eps)
    wrong = load(40).reference(*inputs, 0.0)
    assert relative_error(wrong[0, 0], right[0, 0]) > 0.3
    assert torch.equal(wrong[1], right[1])


def test_an_auxiliary_token_of_zeros_adds_nothing() -> None:
    hidden, *weights, eps = draw(40, "smoke_2")
    output = load(40).reference(hidden, *weights, eps)
    assert (hidden.flatten(1, 2)[1:, 0] == 0).all()
    assert int((hidden == 0).all(dim=-1).sum()) == 2
    assert torch.equal(output[0, 0], (hidden[0, 0, 0].float() / 3).bfloat16())


def test_the_epsilon_bounds_a_mean_square_from_below() -> None:
    torch.manual_seed(0)
    hidden = 1e-3 * torch.randn(3, 1, 4, 8, dtype=torch.float64)
    identity = torch.eye(8, dtype=torch.float64)
    output = load(40).reference(hidden, identity, identity, 0.25)
    # The root of the bound is 1/2: an auxiliary row is doubled, then scaled to stream 0's size.
    size = hidden[0].square().mean(dim=-1, keepdim=True).sqrt()
    expected = (hidden[0] + 2 * size * (hidden[1] + hidden[2])) / 3
    torch.testing.assert_close(output, expected, rtol=1e-12, atol=1e-18)


def test_every_tenth_auxiliary_token_of_a_held_out_draw_is_zero() -> None:
    module = load(40)
    assert module.WORKLOADS["heldout_2"].faint_every == 10
    module.WORKLOADS["tiny"] = module.Sizes(3, 17, hidden_size=8, faint_every=10)
    try:
        hidden = draw(40, "tiny")[0]
    finally:
        del module.WORKLOADS["tiny"]
    zero = (hidden == 0).all(dim=-1).flatten(1)
    assert not zero[0].any()
    assert zero[1:].sum(dim=1).tolist() == [6, 6]
    assert zero[1:, ::10].all()


@pytest.mark.parametrize("mistake", ["weights in place of their transposes", "unit size"])
def test_mistakes_of_the_collapse_are_far_off(mistake: str) -> None:
    hidden, *weights, eps = upcast(draw(40))
    right = load(40).reference(hidden, *weights, eps)
    if mistake == "unit size":
        rows = [functional.rms_norm(hidden[i] @ weights[i - 1].t(), (192,)) for i in (1, 2)]
        wrong = (hidden[0] + rows[0] + rows[1]) / 3
    else:
        wrong = load(40).reference(hidden, *(weight.t() for weight in weights), eps)
    assert relative_error(wrong, right) > 0.25


def test_a_token_meets_the_embedding_of_the_next_and_the_last_that_of_id_zero() -> None:
    ids, hidden, table, enorm_weight, hnorm_weight, projection, eps = upcast(draw(42))
    output = load(42).reference(ids, hidden, table, enorm_weight, hnorm_weight, projection, eps)
    batch, seq_len, width = hidden.shape
    for row in range(batch):
        following = [*ids[row].tolist()[1:], 0]
        for place in range(seq_len):
            embedded = functional.rms_norm(table[following[place]], (width,), enorm_weight, eps)
            state = functional.rms_norm(hidden[row, place], (width,), hnorm_weight, eps)
            expected = projection[:, :width] @ embedded + projection[:, width:] @ state
            torch.testing.assert_close(output[row, place], expected, rtol=1e-11, atol=1e-12)


def test_a_norm_is_rounded_before_its_weight_is_multiplied() -> None:
    ids, hidden, table, enorm_weight, hnorm_weight, _, eps = draw(42)
    width = hidden.shape[-1]
    # This projection picks the normalised hidden state, exactly.
    pick = torch.eye(2 * width, dtype=torch.bfloat16)[width:].contiguous()
    output = load(42).reference(ids, hidden, table, enorm_weight, hnorm_weight, pick, eps)
    rows = functional.rms_norm(hidden.double(), (width,), eps=eps)
    twice = (rows.bfloat16().double() * hnorm_weight.double()).bfloat16()
    once = (rows * hnorm_weight.double()).bfloat16()
    # A row within a float32 rounding of a tie may fall either way.
    assert (output != twice).double().mean() < 1e-3
    assert (output != once).double().mean() > 0.05


@pytest.mark.parametrize(
    ("mistake", "least"),
    [("wrapped", 0.05), ("shifted the other way", 0.5), ("halves swapped", 0.5)],
)
def test_mistakes_of_the_token_entry_are_far_off(mistake: str, least: float) -> None:
    inputs = upcast(draw(42))
    right = load(42).reference(*inputs)
    ids, width = inputs[0], inputs[1].shape[-1]
    if mistake == "wrapped":
        # The reference puts id 0 last; give its row what the first token would have there.
        inputs[2] = inputs[2].clone()
        inputs[2][0] = inputs[2][ids[0, 0]]
    elif mistake == "shifted the other way":
        inputs[0] = ids.roll(2, dims=1)
    else:
        inputs[5] = inputs[5].roll(width, dims=1)
    assert relative_error(load(42).reference(*inputs), right) > least


@pytest.mark.parametrize("number", [40, 42])
def test_every_workload_gives_one_row_per_token(number: int) -> None:
    module = load(number)
    for workload, sizes in module.WORKLOADS.items():
        output = module.reference(*module.make_inputs(workload, "meta"))
        assert output.shape == (sizes.batch, sizes.seq_len, sizes.hidden_size)
        assert output.dtype is torch.bfloat16
