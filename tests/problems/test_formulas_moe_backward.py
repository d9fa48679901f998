"""Mixtures of experts, backward: each reference against autograd in float64."""

import math

import pytest
import torch
from torch.nn import functional

from tests.problems.loading import draw, load, relative_error, upcast


def test_the_routers_gradients_are_autograds() -> None:
    x, router, probs, selected, total, of_weights, of_mask, of_probs = inputs = upcast(draw(46))
    x.requires_grad_()
    router.requires_grad_()
    product = x @ router.t()
    # The probabilities are drawn by themselves; a constant makes the product lead to them.
    made = torch.softmax(product + (probs.log() - product).detach(), dim=-1)
    loss = (made * of_probs).sum()
    for token, row in enumerate(selected.tolist()):
        chosen = made[token, row]
        loss = loss + (of_weights[token] * chosen / chosen.sum()).sum()
        for slot, expert in enumerate(row):
            loss = loss + of_mask[expert, slot, token] * made[token, expert]
    loss.backward()
    grad_hidden, grad_gate = load(46).reference(*inputs)
    # The sums that the draw hands over are float32.
    torch.testing.assert_close(grad_hidden, x.grad, rtol=1e-5, atol=1e-7)
    torch.testing.assert_close(grad_gate, router.grad, rtol=1e-5, atol=1e-5)
    assert float((total - probs.gather(-1, selected).sum(-1, keepdim=True)).abs().max()) < 1e-6


def test_the_gradient_of_the_mask_is_read_at_chosen_experts_only() -> None:
    inputs = draw(46)
    expected = load(46).reference(*inputs)
    mask = inputs[6]
    inputs[6] = torch.full_like(mask, math.nan)
    for token, row in enumerate(inputs[3].tolist()):
        for slot, expert in enumerate(row):
            inputs[6][expert, slot, token] = mask[expert, slot, token]
    for left, right in zip(load(46).reference(*inputs), expected, strict=True):
        assert torch.equal(left, right)


def test_a_router_gradient_added_after_the_softmax_would_be_far_off() -> None:
    inputs = upcast(draw(46))
    expected = load(46).reference(*inputs)[0]
    late, inputs[7] = inputs[7], torch.zeros_like(inputs[7])
    without = load(46).reference(*inputs)[0]
    assert relative_error(without + late @ inputs[1], expected) > 3


def test_each_of_the_three_gradients_counts() -> None:
    expected = load(46).reference(*draw(46))[0]
    for number in (5, 6, 7):
        inputs = draw(46)
        inputs[number].zero_()
        assert relative_error(load(46).reference(*inputs)[0], expected) > 0.05


def test_the_experts_gradients_are_autograds() -> None:
    grad_output, x, indices, weights, gate, up, down = inputs = upcast(draw(50))
    leaves = [leaf.clone().requires_grad_() for leaf in (x, weights, gate, up, down)]
    x, weights, gate, up, down = leaves
    loss = torch.zeros((), dtype=torch.float64)
    for token, row in enumerate(indices.tolist()):
        for slot, e in enumerate(row):
            inner = functional.silu(gate[e] @ x[token]) * (up[e] @ x[token])
            loss = loss + weights[token, slot] * (grad_output[token] @ (down[e] @ inner))
    expected = torch.autograd.grad(loss, leaves)
    for ours, theirs in zip(load(50).reference(*inputs), expected, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_the_chunked_backward_anchor_is_the_upcast_reference() -> None:
    inputs = draw(50)
    expected = load(50).reference(*upcast(inputs))
    for ours, theirs in zip(load(50).anchor(*inputs), expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)


def test_an_expert_without_tokens_gets_zero_gradients() -> None:
    inputs = draw(50)
    inputs[2] = inputs[2] % 8  # may repeat an expert in a row, which only adds up
    for whole in load(50).reference(*inputs)[2:]:
        assert (whole[8:] == 0).all()
        assert (whole[:8] != 0).flatten(1).any(dim=1).all()


@pytest.mark.parametrize("factor", [1e3, -1e3])
def test_gates_far_from_zero_keep_gradients_finite(factor: float) -> None:
    inputs = draw(50)
    inputs[4] *= factor
    assert all(torch.isfinite(output).all() for output in load(50).reference(*inputs))


def test_weights_gradients_do_not_depend_on_the_weights() -> None:
    inputs = upcast(draw(50))
    expected = load(50).reference(*inputs)[1]
    inputs[3] = 3 * inputs[3]
    torch.testing.assert_close(load(50).reference(*inputs)[1], expected)
