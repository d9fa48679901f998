"""Backward problems against autograd in float64, step by step where saved values disagree."""

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional

from tests.problems.loading import draw, load, relative_error, upcast

BOUND = 1e-12
# For each gradient the input, and its first axis, that it is shaped like.
SHAPED_AS = {
    34: ((1, 0), (5, 0), (6, 0), (7, 0)),
    35: ((1, 0), (2, 0), (3, 2), (5, 0), (8, 0), (8, 0), (8, 0)),
    37: ((1, 0), (2, 0), (4, 2), (3, 0), (0, 2)),
    38: ((0, 0), (0, 0), (3, 0)),
}


def gradients(
    function: Callable[..., torch.Tensor], at: tuple[torch.Tensor, ...], grad: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    """Return the gradients of sum(grad * function(*at)) for every argument, by autograd."""
    leaves = [tensor.clone().requires_grad_() for tensor in at]
    return torch.autograd.grad(function(*leaves), leaves, grad)


def assert_near(actual: tuple[torch.Tensor, ...], expected: tuple[torch.Tensor, ...]) -> None:
    for ours, theirs in zip(actual, expected, strict=True):
        assert ours.shape == theirs.shape
        assert relative_error(ours, theirs) < BOUND


def tanh_gelu(x: torch.Tensor) -> torch.Tensor:
    return functional.gelu(x, approximate="tanh")


def test_swiglu_gradients_are_autograds_of_each_step_at_its_saved_values() -> None:
    grad, x, gate, up, act, *weights = upcast(draw(34))
    gate_weight, up_weight, down_weight = weights
    grad_act, grad_up, grad_down_weight = gradients(
        lambda act, up, weight: functional.linear(act * up, weight), (act, up, down_weight), grad
    )
    (grad_gate,) = gradients(functional.silu, (gate,), grad_act)
    through_gate = gradients(functional.linear, (x, gate_weight), grad_gate)
    through_up = gradients(functional.linear, (x, up_weight), grad_up)
    expected = (through_gate[0] + through_up[0], through_gate[1], through_up[1], grad_down_weight)
    assert_near(load(34).reference(grad, x, gate, up, act, *weights), expected)


def test_swiglu_gradients_of_a_true_forward_pass_are_the_whole_blocks() -> None:
    grad, x, *_, gate_weight, up_weight, down_weight = upcast(draw(34))

    def block(x: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        hidden = functional.silu(x @ weights[0].t()) * (x @ weights[1].t())
        return hidden @ weights[2].t()

    weights = (gate_weight, up_weight, down_weight)
    gate, up = x @ gate_weight.t(), x @ up_weight.t()
    found = load(34).reference(grad, x, gate, up, functional.silu(gate), *weights)
    assert_near(found, gradients(block, (x, *weights), grad))


def test_swiglu_activations_that_are_recomputed_are_far_off() -> None:
    inputs = upcast(draw(34))
    right = load(34).reference(*inputs)
    recomputed = list(inputs)
    recomputed[4] = functional.silu(inputs[2])
    assert relative_error(load(34).reference(*recomputed)[3], right[3]) > 0.5
    recomputed = list(inputs)
    recomputed[2:4] = inputs[1] @ inputs[5].t(), inputs[1] @ inputs[6].t()
    assert relative_error(load(34).reference(*recomputed)[1], right[1]) > 0.5


@pytest.mark.parametrize("size", [416, 100, 4_096])
def test_the_anchor_of_swiglu_in_parts_is_the_reference_at_float64(size: int) -> None:
    inputs = draw(34)
    found = load(34).anchor(*inputs, n_columns=size)
    assert all(tensor.dtype is torch.float64 for tensor in found)
    assert_near(found, load(34).reference(*upcast(inputs)))


@pytest.mark.parametrize("size", [128, 50, 65_536])
def test_the_anchor_of_rms_norm_in_parts_is_the_reference_at_float64(size: int) -> None:
    inputs = draw(38)
    found = load(38).anchor(*inputs, n_rows=size)
    assert all(tensor.dtype is torch.float64 for tensor in found)
    assert_near(found, load(38).reference(*upcast(inputs)))


@pytest.mark.parametrize("number", [34, 38])
def test_an_anchor_in_parts_leaves_its_inputs_alone(number: int) -> None:
    load(number).anchor(*(inputs := draw(number)))
    assert all(map(torch.equal, inputs, draw(number)))


def albert_block(x: torch.Tensor, *parameters: torch.Tensor) -> torch.Tensor:
    fc1_weight, fc1_bias, fc2_weight, fc2_bias, ln_weight, ln_bias = parameters
    hidden = tanh_gelu(functional.linear(x, fc1_weight, fc1_bias))
    residual_sum = x + functional.linear(hidden, fc2_weight, fc2_bias)
    return functional.layer_norm(residual_sum, x.shape[-1:], ln_weight, ln_bias, eps=1e-5)


@pytest.mark.parametrize("scale", [1.0, 0.02])
def test_all_gradients_of_the_albert_block_are_autograds(scale: float) -> None:
    grad, x, fc1_weight, _, _, fc2_weight, _, _, ln_weight, eps = upcast(draw(35))
    x = scale * x
    fc1_output = x @ fc1_weight.t()
    residual_sum = x + tanh_gelu(fc1_output) @ fc2_weight.t()
    var, mean = torch.var_mean(residual_sum, dim=-1, correction=0, keepdim=True)
    saved = fc1_output, tanh_gelu(fc1_output)
    normalized = (residual_sum - mean) / (var + eps).sqrt()
    found = load(35).reference(
        grad, x, fc1_weight, *saved, fc2_weight, normalized, var, ln_weight, eps
    )
    inner, width = fc1_weight.shape
    no_fc1_bias, no_bias = x.new_zeros(inner), x.new_zeros(width)
    parameters = (fc1_weight, no_fc1_bias, fc2_weight, no_bias, ln_weight, no_bias)
    assert_near(found, gradients(albert_block, (x, *parameters), grad))


def test_the_albert_draw_is_one_forward_pass() -> None:
    _, x, fc1_weight, fc1_output, gelu_output, fc2_weight, normalized, var, _, eps = draw(35)
    torch.testing.assert_close(fc1_output, functional.linear(x, fc1_weight))
    torch.testing.assert_close(gelu_output, tanh_gelu(fc1_output))
    residual_sum = x + functional.linear(gelu_output, fc2_weight)
    expected = functional.layer_norm(residual_sum, x.shape[-1:], eps=eps)
    torch.testing.assert_close(normalized, expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(var, residual_sum.var(dim=-1, correction=0, keepdim=True))


def test_small_rows_feel_the_epsilon_of_the_albert_block() -> None:
    # var is about 5e-4 and eps 1e-5, so leaving eps out adds half of 2 % to the gradient.
    module = load(35)
    module.WORKLOADS["tiny"] = module.Sizes(2, 16, 64, 256, scale=0.02)
    try:
        inputs = upcast(draw(35, "tiny"))
    finally:
        del module.WORKLOADS["tiny"]
    right = module.reference(*inputs)
    assert 0.005 < relative_error(module.reference(*inputs[:-1], 0.0)[0], right[0]) < 0.02


def test_gelu_gradients_are_autograds_of_each_step_at_its_saved_values() -> None:
    grad, x, fc1_weight, fc2_weight, pre_act, act = upcast(draw(37))
    inner, width = fc1_weight.shape
    fc1_bias, fc2_bias = x.new_zeros(inner), x.new_zeros(width)
    grad_act, *of_fc2 = gradients(functional.linear, (act, fc2_weight, fc2_bias), grad)
    (grad_pre_act,) = gradients(tanh_gelu, (pre_act,), grad_act)
    of_fc1 = gradients(functional.linear, (x, fc1_weight, fc1_bias), grad_pre_act)
    found = load(37).reference(grad, x, fc1_weight, fc2_weight, pre_act, act)
    assert_near(found, (*of_fc1, *of_fc2))


def test_a_gelu_activation_that_is_recomputed_is_far_off() -> None:
    inputs = upcast(draw(37))
    right = load(37).reference(*inputs)
    inputs[5] = tanh_gelu(inputs[4])
    assert relative_error(load(37).reference(*inputs)[3], right[3]) > 0.5


def added_norm(x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return functional.rms_norm(x + residual, x.shape[-1:], weight, eps=1e-6)


def test_the_gradient_of_a_residual_sum_reaches_both_summands() -> None:
    grad, normalized, rstd, weight = upcast(draw(38))
    rows = normalized / rstd
    rstd = 1 / (rows.square().mean(dim=-1, keepdim=True) + 1e-6).sqrt()
    found = load(38).reference(grad, rows * rstd, rstd, weight)
    assert_near(found, gradients(added_norm, (0.25 * rows, 0.75 * rows, weight), grad))
    assert found[0].data_ptr() != found[1].data_ptr()


def test_the_norm_weights_gradient_leaves_no_room_for_lost_digits() -> None:
    # The protocol allows three times this; 1e-4 of the values is the most that tells anything.
    inputs = draw(38)
    anchor = load(38).anchor(*inputs)[2]
    own_error = (load(38).reference(*inputs)[2] - anchor).abs().max()
    assert own_error < 1e-6 * anchor.abs().min()


def test_saved_rows_have_unit_size_and_differ_in_scale() -> None:
    grad, normalized, rstd, weight = upcast(draw(38))
    assert (normalized.square().mean(dim=-1) - 1).abs().max() < 1e-4
    assert 0.4 < rstd.min() < 0.6
    assert 1.6 < rstd.max() < 2.3
    slope = (grad * normalized * weight).sum() / (normalized * weight).square().sum()
    assert float(slope) == pytest.approx(0.5, abs=0.03)


def test_an_rms_norm_gradient_without_its_projection_is_far_off() -> None:
    grad, normalized, rstd, weight = upcast(draw(38))
    right = load(38).reference(grad, normalized, rstd, weight)[0]
    assert relative_error(rstd * grad * weight, right) > 0.3


@pytest.mark.parametrize("workload", ["smoke", "smoke_2", "smoke_3"])
def test_embedding_gradients_are_summed_by_id(workload: str) -> None:
    grad, ids, rows, rstd, weight = upcast(draw(43, workload))
    # rstd is the inverse root of mean square plus an "epsilon" of each row's own.
    excess = rstd**-2 - rows.square().mean(dim=-1, keepdim=True)

    def norm(rows: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return weight * rows / (rows.square().mean(dim=-1, keepdim=True) + excess).sqrt()

    grad_rows, grad_weight = gradients(norm, (rows, weight), grad)
    table = torch.zeros(256, rows.shape[-1], dtype=torch.float64)
    for token, row in zip(ids.flatten().tolist(), grad_rows.flatten(0, 1), strict=True):
        table[token] += row
    found = load(43).reference(grad, ids, rows, rstd, weight, vocab_size=256)
    assert_near(found, (table, grad_weight))
    absent = sorted(set(range(256)) - set(ids.flatten().tolist()))
    assert (found[0][absent] == 0).all()


def test_duplicates_of_an_id_are_rounded_once() -> None:
    inputs = draw(43, "smoke_2")
    right = load(43).reference(*upcast(inputs), vocab_size=8)[0][7]
    found = load(43).reference(*inputs, vocab_size=8)[0][7]
    # bfloat16 keeps 8 bits: one rounding moves a value by 2^-9 of it at most.
    assert ((found.double() - right).abs() <= 2.0**-8 * right.abs() + 1e-4).all()


def test_crowded_ids_stay_in_range() -> None:
    module = load(43)
    torch.manual_seed(0)
    ids = module._draw_ids(module.WORKLOADS["heldout_2"], "cpu")
    assert ids.shape == (7, 999)
    assert 0 <= ids.min() <= ids.max() < module.VOCAB_SIZE
    # u^4 < 1/16 for half of all u
    assert float((ids < module.VOCAB_SIZE / 16).double().mean()) == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize("number", [34, 35, 37, 38])
def test_every_workload_gives_gradients_of_the_shapes_of_what_they_belong_to(number: int) -> None:
    for workload in load(number).WORKLOADS:
        inputs = load(number).make_inputs(workload, "meta")
        expected = [inputs[place].shape[axis:] for place, axis in SHAPED_AS[number]]
        outputs = load(number).reference(*inputs)
        assert [output.shape for output in outputs] == expected


def test_the_embedding_gradient_has_a_row_for_every_id() -> None:
    for workload in load(43).WORKLOADS:
        inputs = load(43).make_inputs(workload, "meta")
        grad_embedding, grad_weight = load(43).reference(*inputs)
        assert grad_embedding.shape == (65_536, inputs[0].shape[-1])
        assert grad_weight.shape == inputs[4].shape
