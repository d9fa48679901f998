"""Recurrences with a matrix state, against one system of equations over all tokens, in float64."""

import pytest
import torch

from problems.tolerance import PerHead, Tolerance
from tests.problems.loading import draw, load, relative_error, upcast
from tests.problems.recurrences import BOUND, solved, unit


@pytest.mark.parametrize("workload", ["smoke", "smoke_2"])
def test_the_delta_rule_solves_its_triangular_system(workload: str) -> None:
    q, k, v, beta, state = upcast(draw(74, workload))
    o, last = load(74).reference(q, k, v, beta, state)
    for b in range(q.shape[0]):
        for h in range(q.shape[1]):
            query, key = unit(q[b, h]) * q.shape[-1] ** -0.5, unit(k[b, h])
            still = torch.zeros_like(key)
            expected = solved(state[b, h], query, key, v[b, h], beta[b, h], still)
            assert relative_error(o[b, h], expected[0]) < BOUND
            assert relative_error(last[b, h], expected[1]) < BOUND


def test_full_shares_and_orthogonal_keys_store_values_exactly() -> None:
    k = torch.eye(4, dtype=torch.float64)[None, None]
    v = torch.arange(12, dtype=torch.float64).reshape(1, 1, 4, 3)
    state = torch.full((1, 1, 4, 3), 9.0, dtype=torch.float64)
    ones = torch.ones(1, 1, 4, dtype=torch.float64)
    o, last = load(74).reference(k, k, v, ones, state)
    torch.testing.assert_close(last, v)
    torch.testing.assert_close(o, v / 2)  # queries are scaled by 4^-0.5


def test_the_initial_state_is_felt_most_by_early_tokens() -> None:
    q, k, v, beta, state = upcast(draw(74))
    with_state, _ = load(74).reference(q, k, v, beta, state)
    without, _ = load(74).reference(q, k, v, beta, torch.zeros_like(state))
    assert relative_error(without[:, :, :8], with_state[:, :, :8]) > 0.5


def stepped(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, beta: torch.Tensor, g: torch.Tensor
) -> torch.Tensor:
    """Return one head's outputs of the gated delta rule, token by token; rows are tokens."""
    state = torch.zeros(k.shape[1], v.shape[1], dtype=k.dtype)
    outputs = torch.empty_like(v)
    for t in range(k.shape[0]):
        state = torch.exp(g[t]) * state
        state = state + torch.outer(k[t], beta[t] * (v[t] - state.t() @ k[t]))
        outputs[t] = state.t() @ q[t]
    return outputs


def test_the_chunked_delta_rule_is_the_token_by_token_one() -> None:
    query, key, value, g, beta, scale = upcast(draw(62))
    output = load(62).reference(query, key, value, g, beta, scale)
    assert output.is_contiguous()
    for b in range(value.shape[0]):
        for h in range(value.shape[1]):
            q, k = (
                x[b, h // 2] / (x[b, h // 2].square().sum(-1, keepdim=True) + 1e-6).sqrt()
                for x in (query, key)
            )
            expected = stepped(scale * q, k, value[b, h], beta[b, h], g[b, h])
            assert relative_error(output[b, :, h], expected) < BOUND


def test_the_chunked_delta_rule_normalises_in_the_inputs_own_dtype() -> None:
    query, key, value, g, beta, scale = draw(62)
    rounded = load(62).reference(query, key, value, g, beta, scale)
    widened = load(62).reference(query.float(), key.float(), value, g, beta, scale)
    assert rounded.dtype is widened.dtype is torch.bfloat16
    assert not torch.equal(rounded, widened)


@pytest.mark.parametrize("ignored", ["decay", "head order"])
def test_the_chunked_delta_rule_feels_decay_and_head_order(ignored: str) -> None:
    query, key, value, g, beta, scale = upcast(draw(62))
    expected = load(62).reference(query, key, value, g, beta, scale)
    if ignored == "decay":
        wrong = load(62).reference(query, key, value, torch.zeros_like(g), beta, scale)
    else:
        wrong = load(62).reference(query.flip(1), key.flip(1), value, g, beta, scale)
    assert relative_error(wrong, expected) > 0.3


@pytest.mark.parametrize("workload", ["smoke", "smoke_2"])
def test_channelwise_decay_enters_the_triangular_system(workload: str) -> None:
    q, k, v, g, beta = upcast(draw(68, workload))
    output = load(68).reference(q, k, v, g, beta)
    group = v.shape[2] // q.shape[2]
    zero = torch.zeros(q.shape[-1], v.shape[-1], dtype=q.dtype)
    for b in range(v.shape[0]):
        for h in range(v.shape[2]):
            query, key = unit(q[b, :, h // group]) / q.shape[-1] ** 0.5, unit(k[b, :, h // group])
            expected, _ = solved(zero, query, key, v[b, :, h], beta[b, :, h], g[b, :, h])
            assert relative_error(output[b, :, h], expected) < BOUND


def test_one_decay_for_all_channels_is_the_scalar_gate_and_none_the_plain_rule() -> None:
    q, k, v, g, beta = upcast(draw(68))
    q, k = unit(q), unit(k)
    scalar = g[..., :1]
    channelwise = load(68).reference(q, k, v, scalar.expand_as(g), beta)
    heads_first = [x.transpose(1, 2) for x in (q, k, v, scalar.squeeze(-1), beta)]
    # Problem 62 adds 1e-6 to the squared length, problem 68 nothing.
    chunked = load(62).reference(*heads_first, q.shape[-1] ** -0.5)
    assert relative_error(chunked, channelwise) < 1e-5
    ungated = load(68).reference(q, k, v, torch.zeros_like(g), beta)
    zero = torch.zeros(2, 2, 16, 16, dtype=torch.float64)
    plain, _ = load(74).reference(*heads_first[:3], heads_first[4], zero)
    assert relative_error(ungated.transpose(1, 2), plain) < BOUND


def test_a_gated_output_is_a_sum_over_the_tokens_before_it() -> None:
    q, k, v, gk = upcast(draw(69))
    output = load(69).reference(q, k, v, gk)
    past = gk.cumsum(1)
    for b, t, h in ((0, 0, 0), (0, 95, 1), (1, 40, 0), (1, 1, 1)):
        expected = torch.zeros(32, dtype=torch.float64)
        for j in range(t + 1):
            left = torch.exp(past[b, t, h] - past[b, j, h])
            expected += (q[b, t, h] * left * k[b, j, h]).sum() / 4 * v[b, j, h]
        torch.testing.assert_close(output[b, t, h], expected)


def test_retention_is_a_fading_state_read_token_by_token() -> None:
    q, k, v = upcast(draw(70))
    output = load(70).reference(q, k, v)
    for h in range(4):
        state = torch.zeros(2, 16, 32, dtype=torch.float64)
        for t in range(q.shape[2]):
            written = torch.einsum("bk,bv->bkv", k[:, h, t], v[:, h, t])
            state = (1 - 2.0 ** (-5 - h)) * state + written
            reading = torch.einsum("bk,bkv->bv", q[:, h, t], state) / 4
            torch.testing.assert_close(output[:, h, t], reading)


def test_a_head_keeps_its_rate_when_there_are_fewer() -> None:
    q, k, v = upcast(draw(70))
    fewer = load(70).reference(q[:, :2], k[:, :2], v[:, :2])
    torch.testing.assert_close(fewer, load(70).reference(q, k, v)[:, :2])


def test_long_retention_stays_finite_in_float32() -> None:
    # Head 0 fades by 2^(-0.0458) a token: 3,000 tokens ahead would be 2^137, beyond float32.
    ones = torch.ones(1, 1, 3_000, 1)
    output = load(70).reference(ones, ones, ones)
    # The sum of a geometric series of ratio 31/32.
    assert output[0, 0, -1, 0].item() == pytest.approx(32, rel=1e-5)


def test_retention_is_judged_head_by_head() -> None:
    assert Tolerance((PerHead(axis=1),)) == load(70).TOLERANCE
    output = load(70).reference(*draw(70)).float()
    assert output[:, 3].square().mean() > 1.5 * output[:, 0].square().mean()
