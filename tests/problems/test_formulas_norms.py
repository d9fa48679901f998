"""Norms and what is built on them against torch's own, and what their mistakes would cost."""

import math
from typing import Any

import pytest
import torch
from torch._subclasses import FakeTensorMode
from torch.nn import functional

from problems.mlp_norm import norms
from tests.problems.loading import draw, load, relative_error, tensors, upcast


def test_norms_of_rows_are_torchs_own() -> None:
    torch.manual_seed(0)
    x = torch.randn(5, 7, 48, dtype=torch.float64) + 3
    for eps in (1e-6, 0.5):
        torch.testing.assert_close(
            norms.layer_norm(x, eps), functional.layer_norm(x, (48,), eps=eps)
        )
        torch.testing.assert_close(norms.rms_norm(x, eps), functional.rms_norm(x, (48,), eps=eps))


def test_the_gradient_of_an_rms_norm_is_that_of_autograd() -> None:
    torch.manual_seed(0)
    x = torch.randn(9, 48, dtype=torch.float64, requires_grad=True)
    weighted = torch.randn(9, 48, dtype=torch.float64)
    normalized = norms.rms_norm(x, 0.0)
    (expected,) = torch.autograd.grad(normalized, x, weighted)
    rstd = x.detach().square().mean(dim=-1, keepdim=True).rsqrt()
    actual = norms.rms_norm_gradient(weighted, normalized.detach(), rstd)
    torch.testing.assert_close(actual, expected, rtol=1e-12, atol=1e-14)


def test_a_fused_add_divides_each_sum_by_its_root_mean_square() -> None:
    hidden, residual, weight = upcast(draw(28))
    output = load(28).reference(hidden, residual, weight)
    for row in (0, 17, 36):
        x = [a + b for a, b in zip(hidden[row].tolist(), residual[row].tolist(), strict=True)]
        root = math.sqrt(math.fsum(value * value for value in x) / 4_096 + 1e-5)
        expected = torch.tensor(x, dtype=torch.float64) / root * weight
        torch.testing.assert_close(output[row], expected, rtol=1e-12, atol=1e-14)


def test_a_fused_add_does_not_round_the_sum() -> None:
    hidden, residual, weight = draw(28)
    # 257 is no bfloat16: rounded, it would be 256 and the residual without effect.
    hidden[:, ::3], residual[:, ::3] = 256, 0
    without = load(28).reference(hidden, residual, weight)
    residual[:, ::3] = 1
    assert not torch.equal(load(28).reference(hidden, residual, weight), without)


def test_rows_of_another_width_are_refused() -> None:
    rows = torch.ones(2, 128, dtype=torch.bfloat16)
    with pytest.raises(ValueError, match=r"rows are 128 wide; this norm takes 4096"):
        load(28).reference(rows, rows, rows[0])


def test_tiny_sums_feel_the_epsilon_of_the_fused_add() -> None:
    # mean square 1e-6 and EPS 1e-5: rows shrink by sqrt(1e-6 / 1.1e-5) = 0.3015.
    torch.manual_seed(0)
    rows = 1e-3 * torch.randn(8, 4_096, dtype=torch.float64)
    output = load(28).reference(rows, torch.zeros_like(rows), torch.ones_like(rows[0]))
    assert float(output.square().mean().sqrt()) == pytest.approx(0.3015, rel=0.02)


@pytest.mark.parametrize("workload", ["smoke", "smoke_2"])
def test_groups_of_channels_are_normalised_as_torch_does(workload: str) -> None:
    x, weight, bias, eps = upcast(draw(31, workload))
    expected = functional.group_norm(x, 32, weight, bias, eps)
    output = load(31).reference(x, weight, bias, eps)
    torch.testing.assert_close(output, expected, rtol=1e-11, atol=1e-11)


def test_a_group_is_a_run_of_neighbouring_channels() -> None:
    inputs = upcast(draw(31))
    before = load(31).reference(*inputs)
    inputs[0][0, 10:20] += torch.randn(10, 8, 8, dtype=torch.float64)  # group 1 of image 0
    changed = (load(31).reference(*inputs) != before).flatten(2).any(dim=-1)
    assert changed.nonzero().tolist() == [[0, channel] for channel in range(10, 20)]


def test_a_variance_by_difference_of_squares_would_lose_its_digits() -> None:
    inputs = draw(31, "smoke_2")
    anchor = load(31).reference(*upcast(inputs))
    assert relative_error(load(31).reference(*inputs), anchor) < 1e-5
    x, weight, bias, eps = inputs
    groups = x.view(2, 32, -1)
    mean = groups.mean(dim=-1, keepdim=True)
    variance = groups.square().mean(dim=-1, keepdim=True) - mean.square()
    normalized = ((groups - mean) / torch.sqrt(variance + eps)).view(x.shape)
    careless = normalized * weight[:, None, None] + bias[:, None, None]
    assert relative_error(careless, anchor) > 1e-4


def modulated_projection(inputs: list[Any], *, sample: int) -> torch.Tensor:
    x, conditioning, mod_weight, mod_bias, proj_weight, proj_bias, eps = inputs
    width = x.shape[-1]
    condition = conditioning[sample] / (1 + torch.exp(-conditioning[sample]))
    scale = mod_weight[:width] @ condition + mod_bias[:width]
    shift = mod_weight[width:] @ condition + mod_bias[width:]
    # The scale and the shift are a layer norm's weight and bias.
    z = functional.layer_norm(x[sample], (width,), 1 + scale, shift, eps)
    return z @ proj_weight.t() + proj_bias


@pytest.mark.parametrize("workload", ["smoke", "smoke_2"])
def test_each_sample_is_normalised_scaled_and_shifted_by_its_condition(workload: str) -> None:
    inputs = upcast(draw(39, workload))
    output = load(39).reference(*inputs)
    for sample in range(2):
        expected = modulated_projection(inputs, sample=sample)
        torch.testing.assert_close(output[sample], expected, rtol=1e-10, atol=1e-11)


def test_a_large_mean_costs_the_modulated_norm_no_digits() -> None:
    inputs = draw(39, "smoke_2")
    anchor = load(39).reference(*upcast(inputs))
    assert relative_error(load(39).reference(*inputs), anchor) < 3e-6


def test_mistakes_of_the_modulation_are_far_off() -> None:
    inputs = upcast(draw(39))
    right = load(39).reference(*inputs)
    weight, bias = inputs[2], inputs[3].clone()
    inputs[2], inputs[3] = weight.roll(192, dims=0), bias.roll(192)
    assert relative_error(load(39).reference(*inputs), right) > 0.1  # shift first, then scale
    inputs[2], inputs[3] = weight, torch.cat((bias[:192] - 1, bias[192:]))
    assert relative_error(load(39).reference(*inputs), right) > 0.1  # scale in place of 1 + scale


def test_the_condition_passes_silu_before_its_layer() -> None:
    inputs = upcast(draw(39))
    inputs[1] = torch.full_like(inputs[1], -1e3)  # silu of it is 0, which leaves the biases
    biases = [inputs[0], torch.zeros_like(inputs[1]), *inputs[2:]]
    torch.testing.assert_close(load(39).reference(*inputs), load(39).reference(*biases))


def test_queries_and_keys_are_normalised_head_by_head_and_values_are_not() -> None:
    x, *weights, q_norm, k_norm, eps = upcast(draw(41))
    outputs = load(41).reference(x, *weights, q_norm, k_norm, eps)
    for head in range(4):
        rows = slice(32 * head, 32 * head + 32)
        q, k, v = (x @ weight[rows].t() for weight in weights)
        expected = (
            functional.rms_norm(q, (32,), q_norm, eps),
            functional.rms_norm(k, (32,), k_norm, eps),
            v,
        )
        for output, part in zip(outputs, expected, strict=True):
            torch.testing.assert_close(output[:, :, head], part, rtol=1e-11, atol=1e-13)


def test_mistakes_of_the_per_head_norm_are_far_off() -> None:
    inputs = upcast(draw(41))
    q, k, v = load(41).reference(*inputs)
    whole = functional.rms_norm((inputs[0] @ inputs[1].t()), (128,)).view(q.shape) * inputs[4]
    assert relative_error(whole, q) > 0.05
    assert relative_error(q + q / inputs[4], q) > 0.5  # 1 + w
    assert relative_error(functional.rms_norm(v, (32,)), v) > 0.05
    assert relative_error(k, q) > 0.5


def test_queries_keys_and_values_share_no_storage() -> None:
    outputs = load(41).reference(*draw(41))
    assert len({output.untyped_storage().data_ptr() for output in outputs}) == 3


@pytest.mark.parametrize("number", [28, 29, 30, 31, 32, 33, 39, 41])
def test_every_workload_fits_together(number: int) -> None:
    module = load(number)
    for workload in module.WORKLOADS:
        with FakeTensorMode():
            inputs = module.make_inputs(workload, "cpu")
            outputs = tensors(module.reference(*inputs))
        leading = inputs[0].shape[:2] if number in {39, 41} else inputs[0].shape
        for output in outputs:
            assert output.shape[: len(leading)] == leading
            assert output.dtype is inputs[0].dtype
