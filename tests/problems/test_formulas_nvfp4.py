"""Each problem with an NVFP4 weight against loops, and the shortcuts its limit must reject."""

import math
from typing import Any

import pytest
import torch

from tests.problems.loading import draw, load, relative_error, upcast
from tests.problems.quantised import decode, through_nvfp4, with_sizes


def silu(x: torch.Tensor) -> torch.Tensor:
    return x / (1 + torch.exp(-x))


def limit(number: int) -> float:
    return float(load(number).TOLERANCE.rules[0].limit)


def splice(embedding: torch.Tensor, inputs: list[Any], projected: torch.Tensor) -> torch.Tensor:
    """Put projected rows at marked positions, one position after the other."""
    ids, mask = inputs[0], inputs[7]
    expected = torch.empty(*ids.shape, embedding.shape[1], dtype=torch.float64)
    for row in range(ids.shape[0]):
        waiting = list(projected[row])
        for position in range(ids.shape[1]):
            vision = bool(mask[row, position]) and bool(waiting)
            here = waiting.pop(0) if vision else embedding[ids[row, position]]
            expected[row, position] = here
    return expected


def test_55_splices_projected_features_in_order() -> None:
    inputs = upcast(draw(55))
    _, embedding, vision, codes, scales, whole, bias, _ = inputs
    projected = through_nvfp4(vision) @ decode(codes[0], scales[0], whole).t() + bias
    expected = splice(embedding, inputs, projected)
    assert relative_error(load(55).reference(*inputs), expected) < 1e-12


def test_55_marks_as_many_positions_as_there_are_vision_rows() -> None:
    mask = draw(55)[7]
    assert mask.sum(dim=1).tolist() == [12, 12]
    assert not torch.equal(mask[0], mask[1])


def test_55_too_few_too_many_and_no_marked_positions(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"length": 80, "hidden": 128, "vision_hidden": 64, "vocabulary": 100}
    inputs = upcast(with_sizes(monkeypatch, 55, "heldout_2", **sizes))
    _, embedding, vision, codes, scales, whole, bias, mask = inputs
    assert mask.sum(dim=1).tolist() == [59, 64, 69, 0]
    projected = through_nvfp4(vision) @ decode(codes[0], scales[0], whole).t() + bias
    expected = splice(embedding, inputs, projected)
    assert relative_error(load(55).reference(*inputs), expected) < 1e-12


def test_55_one_outlier_changes_every_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"length": 80, "hidden": 128, "vision_hidden": 64, "vocabulary": 100}
    inputs = with_sizes(monkeypatch, 55, "heldout_2", **sizes)
    with_outlier = load(55).reference(*inputs)
    inputs[2][0, 0, 0] = 0
    without = load(55).reference(*inputs)
    changed = (with_outlier != without).any(dim=2)
    assert changed[:3].sum(dim=1).min() > 50
    assert not changed[3].any()


def test_55_rounds_before_and_after_the_bias() -> None:
    inputs = draw(55)
    _, embedding, vision, codes, scales, whole, bias, _ = inputs
    projected = through_nvfp4(vision) @ decode(codes[0], scales[0], whole).t()
    twice = splice(embedding, inputs, (projected.to(torch.bfloat16) + bias).double())
    once = splice(embedding, inputs, (projected + bias.double()).to(torch.bfloat16).double())
    output = load(55).reference(*inputs).double()
    assert (output != twice).double().mean() < 1e-3
    assert (output != once).double().mean() > 0.03


def test_55_rejects_features_that_are_not_quantised() -> None:
    inputs = upcast(draw(55))
    _, embedding, vision, codes, scales, whole, bias, _ = inputs
    shortcut = splice(embedding, inputs, vision @ decode(codes[0], scales[0], whole).t() + bias)
    assert relative_error(shortcut, load(55).reference(*inputs)) > 2 * limit(55)


def test_59_is_a_product_of_decoded_codes() -> None:
    x, *weight = upcast(draw(59))
    expected = through_nvfp4(x) @ decode(*weight).t()
    assert relative_error(load(59).reference(x, *weight), expected) < 1e-12


def test_59_is_not_cast_back() -> None:
    inputs = draw(59)
    assert load(59).reference(*inputs).dtype is torch.float32


def test_59_rejects_rows_not_quantised_or_scaled_by_rows() -> None:
    x, *weight = upcast(draw(59))
    anchor, right = load(59).reference(x, *weight), decode(*weight)
    by_row = torch.stack([through_nvfp4(row) for row in x])
    for left in (x, by_row):
        assert relative_error(left @ right.t(), anchor) > 50 * limit(59)


def test_59_rejects_one_wrong_block_scale() -> None:
    x, codes, scales, whole = draw(59)
    anchor = load(59).reference(x, codes, scales, whole)
    wrong = scales.float()
    wrong[17, 3] *= 2
    shortcut = load(59).reference(x, codes, wrong.to(torch.float8_e4m3fn), whole)
    assert relative_error(shortcut, anchor) > limit(59)


@pytest.mark.parametrize("number", [55, 59, 61])
def test_swapped_nibbles_are_far_off(number: int) -> None:
    inputs = draw(number)
    anchor = load(number).reference(*inputs)
    place = next(i for i, x in enumerate(inputs) if getattr(x, "dtype", None) is torch.uint8)
    inputs[place] = (inputs[place] >> 4) | (inputs[place] << 4)
    assert relative_error(load(number).reference(*inputs), anchor) > 0.3


@pytest.mark.parametrize("number", [59, 61])
def test_an_outlier_in_every_block_silences_the_rest(number: int) -> None:
    # The weight's low half of every sixteenth byte is cleared, so the outlier meets a zero.
    inputs = draw(number)
    inputs[0][..., ::16] = 1e3
    for codes in inputs[1:-2:3]:
        codes[..., ::8] &= 0xF0
    assert (load(number).reference(*inputs) == 0).all()


def test_61_is_a_gated_mlp_of_decoded_codes() -> None:
    x, *weights = upcast(draw(61))
    gate, up, down = (
        decode(weights[i][0], weights[i + 1][0], weights[i + 2]) for i in range(0, 9, 3)
    )
    rows = through_nvfp4(x.flatten(0, 1))
    gated = silu(rows @ gate.t()) * (rows @ up.t())
    expected = (through_nvfp4(gated) @ down.t()).reshape(x.shape)
    # A gated value at a tie may get another code when sums are ordered otherwise.
    assert relative_error(load(61).reference(x, *weights), expected) < 1e-3


def test_61_rejects_a_step_left_unquantised() -> None:
    x, *weights = upcast(draw(61))
    anchor = load(61).reference(x, *weights)
    gate, up, down = (
        decode(weights[i][0], weights[i + 1][0], weights[i + 2]) for i in range(0, 9, 3)
    )
    plain, rows = x.flatten(0, 1), through_nvfp4(x.flatten(0, 1))
    hidden_left = (silu(rows @ gate.t()) * (rows @ up.t())) @ down.t()
    x_left = through_nvfp4(silu(plain @ gate.t()) * (plain @ up.t())) @ down.t()
    for shortcut in (hidden_left, x_left):
        assert relative_error(shortcut.reshape(x.shape), anchor) > limit(61)


def test_61_gate_and_up_have_a_spread_of_one() -> None:
    x, *weights = upcast(draw(61))
    gate = decode(weights[0][0], weights[1][0], weights[2])
    assert math.isclose(float((x.flatten(0, 1) @ gate.t()).std()), 1, rel_tol=0.05)


@pytest.mark.parametrize("number", [55, 57, 59, 61])
def test_every_workload_has_inner_sizes_of_whole_blocks(number: int) -> None:
    inner = ("k", "hidden", "intermediate", "vision_hidden", "head_dim")
    for sizes in load(number).WORKLOADS.values():
        assert all(getattr(sizes, name, 16) % 16 == 0 for name in inner)
        assert getattr(sizes, "n_heads", 1) % getattr(sizes, "n_kv_heads", 1) == 0
