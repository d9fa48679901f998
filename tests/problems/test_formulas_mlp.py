"""Feed-forward blocks against explicit formulas in float64, and what their mistakes would cost."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional

from problems.mlp_norm import activations
from problems.mlp_norm.draws import linear_weight
from tests.problems.loading import draw, load, relative_error, upcast

Activation = Callable[[torch.Tensor], torch.Tensor]


def normal_cdf(x: torch.Tensor) -> torch.Tensor:
    return 0.5 * (1 + torch.erf(x / math.sqrt(2)))


def tanh_gelu(x: torch.Tensor) -> torch.Tensor:
    return 0.5 * x * (1 + torch.tanh(0.7978845608028654 * (x + 0.044715 * x**3)))


def gated(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    return gate / (1 + torch.exp(-gate)) * up


@pytest.mark.parametrize("x", [-40.0, -3.0, -0.7, 0.0, 1e-4, 0.3, 2.0, 40.0])
def test_activations_are_the_textbooks(x: float) -> None:
    at = torch.tensor(x, dtype=torch.float64)
    gelu = x * 0.5 * math.erfc(-x / math.sqrt(2))
    cubic = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    assert float(activations.silu(at)) == pytest.approx(x / (1 + math.exp(-x)), abs=1e-15)
    assert float(activations.gelu_erf(at)) == pytest.approx(gelu, abs=1e-15)
    assert float(activations.gelu_tanh(at)) == pytest.approx(
        0.5 * x * (1 + math.tanh(cubic)), abs=1e-15
    )


@pytest.mark.parametrize(
    ("function", "derivative"),
    [
        (activations.silu, activations.silu_derivative),
        (activations.gelu_tanh, activations.gelu_tanh_derivative),
    ],
)
def test_derivatives_are_those_of_autograd(function: Activation, derivative: Activation) -> None:
    x = torch.linspace(-30, 30, 241, dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(function(x).sum(), x)
    torch.testing.assert_close(derivative(x.detach()), slope, rtol=1e-12, atol=1e-14)


def test_a_drawn_weight_is_rounded_again_after_the_division() -> None:
    torch.manual_seed(5)
    weight = linear_weight(32, 96, dtype=torch.bfloat16, device="cpu")
    torch.manual_seed(5)
    drawn = torch.randn(32, 96, dtype=torch.bfloat16).double()
    assert torch.equal(weight, (drawn / math.sqrt(96)).to(torch.bfloat16))


def patch_merger(rows: torch.Tensor, inputs: list[Any]) -> torch.Tensor:
    _, grids, _, _, w1, b1, w2, b2, _ = inputs
    inner = merge_patches(rows, grids.tolist()) @ w1.t() + b1
    return (inner * normal_cdf(inner)) @ w2.t() + b2


def merge_patches(rows: torch.Tensor, grids: list[list[int]]) -> torch.Tensor:
    merged, first = [], 0
    for frames, height, width in grids:
        for frame in range(frames):
            for top in range(0, height, 2):
                for left in range(0, width, 2):
                    corner = first + (frame * height + top) * width + left
                    block = (corner, corner + 1, corner + width, corner + width + 1)
                    merged.append(torch.cat([rows[patch] for patch in block]))
        first += frames * height * width
    return torch.stack(merged)


def test_patches_are_normalised_then_merged_block_by_block() -> None:
    inputs = upcast(draw(27))
    hidden, _, weight, bias, *_, eps = inputs
    output = load(27).reference(*inputs)
    rows = functional.layer_norm(hidden, (96,), weight, bias, eps)
    torch.testing.assert_close(output, patch_merger(rows, inputs), rtol=1e-11, atol=1e-12)
    # A norm that leaves the mean in its rows is far off, for every patch has its own.
    rows = functional.rms_norm(hidden, (96,), weight, eps) + bias
    assert relative_error(patch_merger(rows, inputs), output) > 0.2


def test_each_grid_is_merged_by_itself() -> None:
    inputs = upcast(draw(27))
    whole, hidden, first, row = load(27).reference(*inputs), inputs[0], 0, 0
    for frames, height, width in inputs[1].tolist():
        n_patches = frames * height * width
        inputs[0] = hidden[first : first + n_patches]
        inputs[1] = torch.tensor([[frames, height, width]])
        alone = load(27).reference(*inputs)
        torch.testing.assert_close(alone, whole[row : row + n_patches // 4])
        first, row = first + n_patches, row + n_patches // 4


@pytest.mark.parametrize("mistake", ["one row each", "height and width", "fc1", "fc2"])
def test_a_mistake_of_the_patch_merger_is_far_off(mistake: str) -> None:
    inputs = upcast(draw(27))
    right = load(27).reference(*inputs)
    if mistake == "one row each":  # four neighbours of a row in place of a block
        inputs[1] = torch.tensor([[1, 2, 2]]).expand(64, 3)
    elif mistake == "height and width":
        inputs[1] = inputs[1][:, [0, 2, 1]]
    else:
        bias = 5 if mistake == "fc1" else 7
        inputs[bias] = torch.zeros_like(inputs[bias])
    assert relative_error(load(27).reference(*inputs), right) > 0.05


def test_held_out_grids_are_even_and_hold_the_stated_patches() -> None:
    workloads = load(27).WORKLOADS
    # 64*96 + 4*16*32 + 2*2 + 2*30*50 = 6144 + 2048 + 4 + 3000
    assert workloads["heldout_1"].n_patches == 11_196
    assert workloads["heldout_2"].n_patches == 16_640
    assert workloads["full"].n_patches == 32_768
    for sizes in workloads.values():
        assert all(height % 2 == width % 2 == 0 for _, height, width in sizes.grids)


def test_the_flux_block_is_two_linear_layers_around_a_tanh_gelu() -> None:
    x, w1, b1, w2, b2 = upcast(draw(29))
    inner = torch.einsum("bsh,ih->bsi", x, w1) + b1
    expected = torch.einsum("bsi,hi->bsh", tanh_gelu(inner), w2) + b2
    output = load(29).reference(x, w1, b1, w2, b2)
    torch.testing.assert_close(output, expected, rtol=1e-11, atol=1e-12)
    # The exact GELU is near, and yet a hundred times the rounding of float32.
    exact = torch.einsum("bsi,hi->bsh", inner * normal_cdf(inner), w2) + b2
    assert 5e-5 < relative_error(exact, output) < 5e-4
    assert relative_error(load(29).reference(*draw(29)), output) < 1e-6


@pytest.mark.parametrize("bias", [2, 4])
def test_a_dropped_bias_of_the_flux_block_is_far_off(bias: int) -> None:
    inputs = upcast(draw(29))
    right = load(29).reference(*inputs)
    inputs[bias] = torch.zeros_like(inputs[bias])
    assert relative_error(load(29).reference(*inputs), right) > 0.3


def test_hidden_channels_are_scaled_by_their_response_over_the_image() -> None:
    x, w1, b1, grn_weight, grn_bias, w2, b2, eps = upcast(draw(30))
    output = load(30).reference(x, w1, b1, grn_weight, grn_bias, w2, b2, eps)
    for image in range(x.shape[0]):
        inner = x[image].flatten(0, 1) @ w1.t() + b1
        h = inner * normal_cdf(inner)
        norms = [float(torch.linalg.vector_norm(h[:, channel])) for channel in range(128)]
        mean = math.fsum(norms) / 128
        response = torch.tensor([norm / (mean + eps) for norm in norms], dtype=torch.float64)
        z = h * (1 + grn_weight.flatten() * response) + grn_bias.flatten()
        expected = (z @ w2.t() + b2).view(output.shape[1:])
        torch.testing.assert_close(output[image], expected, rtol=1e-11, atol=1e-12)


def test_images_keep_their_responses_apart() -> None:
    inputs = upcast(draw(30))
    whole = load(30).reference(*inputs)
    alone = load(30).reference(inputs[0][1:], *inputs[1:])
    torch.testing.assert_close(alone, whole[1:])
    # Pooled over the batch, here two images on top of each other, the response is another.
    pooled = load(30).reference(inputs[0].view(1, 28, 14, 32), *inputs[1:]).view(whole.shape)
    assert relative_error(pooled, whole) > 3e-3


def test_the_response_is_added_to_the_hidden_layer_itself() -> None:
    inputs = upcast(draw(30))
    right = load(30).reference(*inputs)
    inputs[3], inputs[4] = torch.zeros_like(inputs[3]), torch.zeros_like(inputs[4])
    plain = load(30).reference(*inputs)
    x, w1, b1, _, _, w2, b2, _ = inputs
    inner = x @ w1.t() + b1
    torch.testing.assert_close(plain, (inner * normal_cdf(inner)) @ w2.t() + b2)
    assert relative_error(plain, right) > 0.03


def test_the_first_half_is_the_gate_and_the_second_goes_up() -> None:
    x, gate_up, down = upcast(draw(32))
    gate, up = x @ gate_up[:256].t(), x @ gate_up[256:].t()
    output = load(32).reference(x, gate_up, down)
    torch.testing.assert_close(output, gated(gate, up) @ down.t(), rtol=1e-11, atol=1e-13)
    swapped = load(32).reference(x, gate_up.roll(256, dims=0), down)
    assert relative_error(swapped, output) > 0.5
    interleaved = gate_up.view(2, 256, 64).transpose(0, 1).reshape(512, 64)
    assert relative_error(load(32).reference(x, interleaved, down), output) > 0.5


def test_gates_far_below_zero_close_without_overflow() -> None:
    x, gate_up, down = draw(32)
    output = load(32).reference(1e4 * x.abs(), -gate_up.abs(), down)
    assert (output == 0).all()


def test_hermes_normalises_the_sum_gates_it_and_projects_down() -> None:
    hidden, residual, norm_weight, gate, up, down, eps = upcast(draw(33))
    output = load(33).reference(hidden, residual, norm_weight, gate, up, down, eps)
    y = functional.rms_norm(hidden + residual, (128,), norm_weight, eps)
    expected = gated(y @ gate.t(), y @ up.t()) @ down.t()
    torch.testing.assert_close(output, expected, rtol=1e-11, atol=1e-13)
    swapped = load(33).reference(hidden, residual, norm_weight, up, gate, down, eps)
    assert relative_error(swapped, output) > 0.5


def test_hermes_rounds_the_sum_before_the_norm() -> None:
    inputs = draw(33)
    # 257 is no bfloat16 and goes to 256, the even neighbour.
    inputs[0][..., ::3], inputs[1][..., ::3] = 256, 0
    without = load(33).reference(*inputs)
    inputs[1][..., ::3] = 1
    assert torch.equal(load(33).reference(*inputs), without)


def test_hermes_takes_epsilon_from_its_argument() -> None:
    inputs = upcast(draw(33))
    small = load(33).reference(*inputs)
    inputs[6] = 2.0  # the mean square of the sum: rows shrink by about sqrt(2)
    assert float(load(33).reference(*inputs).norm() / small.norm()) < 0.75
