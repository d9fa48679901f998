"""Each FP8 problem against loops over its codes, and the shortcuts that its limit must reject."""

import pytest
import torch

from tests.problems.loading import draw, load, relative_error, upcast
from tests.problems.quantised import BLOCK, E4M3, nearest, through_fp8, with_sizes


def linear(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return through_fp8(x, 1) @ through_fp8(weight, BLOCK).t()


def rounded(quotient: torch.Tensor) -> torch.Tensor:
    return E4M3[nearest(quotient.clamp(-448, 448), E4M3)] * quotient.sign()


def test_52_is_a_product_of_decoded_codes_plus_the_bias() -> None:
    x, weight, bias = upcast(draw(52))
    expected = linear(x, weight) + bias
    assert relative_error(load(52).reference(x, weight, bias), expected) < 1e-12


@pytest.mark.parametrize("shortcut", ["neither", "weight alone", "rows alone"])
def test_52_rejects_an_operand_left_unquantised(shortcut: str) -> None:
    x, weight, bias = upcast(draw(52))
    left = through_fp8(x, 1) if shortcut == "rows alone" else x
    right = through_fp8(weight, BLOCK) if shortcut == "weight alone" else weight
    anchor = load(52).reference(x, weight, bias)
    assert relative_error(left @ right.t() + bias, anchor) > 2 * load(52).TOLERANCE.rules[0].limit


def test_52_rejects_scales_of_powers_of_two() -> None:
    x, weight, bias = upcast(draw(52))
    blocks = x.unflatten(-1, (-1, BLOCK))
    scale = torch.exp2(torch.ceil(torch.log2(blocks.abs().amax(-1, keepdim=True) / 448)))
    rows = (rounded(blocks / scale) * scale).flatten(-2)
    shortcut = rows @ through_fp8(weight, BLOCK).t() + bias
    assert relative_error(shortcut, load(52).reference(x, weight, bias)) > 6e-3


def test_52_rejects_one_scale_for_the_weight() -> None:
    x, weight, bias = upcast(draw(52))
    scale = weight.abs().max() / 448
    one = rounded(weight / scale) * scale
    shortcut = through_fp8(x, 1) @ one.t() + bias
    assert relative_error(shortcut, load(52).reference(x, weight, bias)) > 6e-3


def test_52_an_outlier_in_every_block_leaves_the_bias(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = with_sizes(monkeypatch, 52, "heldout_2", m=5, n=256, k=384)
    assert (inputs[0].abs() == inputs[0].abs().max()).sum() == 5 * 384 // BLOCK
    assert torch.equal(load(52).reference(*inputs), inputs[2].expand(5, -1))


def test_52_a_row_of_zeros_leaves_the_bias(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = with_sizes(monkeypatch, 52, "heldout_3", m=4, n=256, k=256)
    output = load(52).reference(*inputs)
    assert torch.equal(output[0], inputs[2])
    assert not torch.equal(output[1], inputs[2])


def test_52_adds_the_bias_before_it_rounds() -> None:
    x, weight, bias = draw(52)
    exact = linear(x, weight)
    rounded_first = exact.to(torch.bfloat16) + bias
    rounded_once = (exact + bias.double()).to(torch.bfloat16)
    output = load(52).reference(x, weight, bias)
    assert (output != rounded_once).double().mean() < 1e-3
    assert (output != rounded_first).double().mean() > 0.05


def test_53_is_a_gate_of_two_products_of_decoded_codes() -> None:
    x, scale_x, gate, scale_gate, up, scale_up = upcast(draw(53))

    def decoded(codes: torch.Tensor, scales: torch.Tensor, height: int) -> torch.Tensor:
        code = codes.view(torch.uint8).long()
        values = E4M3[code % 128] * torch.where(code < 128, 1, -1)
        rows = torch.arange(values.shape[0]) // height
        return values * scales[rows][:, torch.arange(values.shape[1]) // BLOCK]

    rows = decoded(x, scale_x, 1)
    g, u = (rows @ decoded(*pair, BLOCK).t() for pair in ((gate, scale_gate), (up, scale_up)))
    anchor = load(53).reference(x, scale_x, gate, scale_gate, up, scale_up)
    assert relative_error(anchor, g / (1 + torch.exp(-g)) * u) < 1e-12


@pytest.mark.parametrize("operand", [1, 3, 5])
def test_53_rejects_one_scale_for_an_operand(operand: int) -> None:
    inputs = upcast(draw(53))
    anchor = load(53).reference(*inputs)
    inputs[operand] = torch.full_like(inputs[operand], float(inputs[operand].mean()))
    assert relative_error(load(53).reference(*inputs), anchor) > 0.1


def test_53_gates_with_the_first_weight() -> None:
    x, scale_x, gate, scale_gate, up, scale_up = upcast(draw(53))
    anchor = load(53).reference(x, scale_x, gate, scale_gate, up, scale_up)
    swapped = load(53).reference(x, scale_x, up, scale_up, gate, scale_gate)
    assert relative_error(swapped, anchor) > 0.5


def test_53_rounds_once_to_bfloat16_and_not_at_all_in_float64() -> None:
    inputs = draw(53)
    output, anchor = load(53).reference(*inputs), load(53).reference(*upcast(inputs))
    assert (output.dtype, anchor.dtype) == (torch.bfloat16, torch.float64)
    assert (output != anchor.to(torch.bfloat16)).double().mean() < 1e-3


def test_54_projects_each_head_and_normalises_queries_and_keys() -> None:
    hidden, *rest = upcast(draw(54))
    weights, biases, norms, eps = rest[:3], rest[3:6], [*rest[6:8], None], rest[8]
    outputs = load(54).reference(hidden, *rest)
    rows_of_all = through_fp8(hidden.flatten(0, 1), 1)
    for weight, bias, norm, output in zip(weights, biases, norms, outputs, strict=True):
        projected = rows_of_all @ through_fp8(weight, BLOCK).t() + bias
        for head in range(output.shape[1]):
            for batch in range(hidden.shape[0]):
                rows = slice(batch * hidden.shape[1], (batch + 1) * hidden.shape[1])
                expected = projected[rows, 128 * head : 128 * (head + 1)]
                if norm is not None:
                    length = expected.norm(dim=-1, keepdim=True)
                    expected = norm * expected / (length.square() / 128 + eps).sqrt()
                assert relative_error(output[batch, head], expected) < 1e-12


def test_54_rejects_unquantised_projections() -> None:
    hidden, q_weight, k_weight, v_weight, q_bias, k_bias, v_bias, *rest = upcast(draw(54))
    inputs = (hidden, q_weight, k_weight, v_weight, q_bias, k_bias, v_bias, *rest)
    _, _, v = load(54).reference(*inputs)
    plain = hidden @ v_weight.t() + v_bias
    assert relative_error(plain.unsqueeze(1), v) > 2 * load(54).TOLERANCE.rules[2].limit


def test_54_norms_have_one_weight_for_all_heads_and_values_none() -> None:
    inputs = draw(54)
    q, k, v = load(54).reference(*inputs)
    assert (q.shape, k.shape, v.shape) == ((2, 4, 32, 128), (2, 1, 32, 128), (2, 1, 32, 128))
    unweighted = q.double() / inputs[7].double()
    assert unweighted.square().mean(-1).sqrt().sub(1).abs().max() < 1e-2
    assert v.double().square().mean(-1).sqrt().sub(1).abs().max() > 1e-2
