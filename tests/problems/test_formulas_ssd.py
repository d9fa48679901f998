"""The Mamba-2 scans, and WKV, against loops over tokens in float64."""

import math
from typing import Any

import pytest
import torch

from tests.problems.loading import draw, load, relative_error, upcast
from tests.problems.recurrences import BOUND


def stepped(
    x: torch.Tensor, a: torch.Tensor, ins: torch.Tensor, outs: torch.Tensor, state: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return one head's (outputs, last state), token by token.

    Args: x [T, P]; a [T]; ins and outs [T, N]; state [P, N].
    """
    outputs = torch.empty_like(x)
    for t in range(x.shape[0]):
        state = math.exp(float(a[t])) * state + torch.outer(x[t], ins[t])
        outputs[t] = state @ outs[t]
    return outputs, state


@pytest.mark.parametrize(("workload", "chunk"), [("smoke", 256), ("smoke", 64), ("smoke_2", 32)])
def test_the_chunked_scan_is_the_token_by_token_one(workload: str, chunk: int) -> None:
    x, a, ins, outs, skip, state = upcast(draw(64, workload))
    y, final_state = load(64).reference(x, a, ins, outs, skip, state, chunk=chunk)
    heads = y.unflatten(-1, (4, 16))
    for b in range(2):
        for h in range(4):
            expected, last = stepped(x[b, :, h], a[b, h], ins[b, :, 0], outs[b, :, 0], state[b, h])
            assert relative_error(heads[b, :, h], expected + skip[h] * x[b, :, h]) < BOUND
            assert relative_error(final_state[b, h], last) < BOUND


def test_a_lost_initial_state_shows_in_early_tokens() -> None:
    x, a, ins, outs, skip, state = upcast(draw(64))
    y, _ = load(64).reference(x, a, ins, outs, skip, state)
    without, _ = load(64).reference(x, a, ins, outs, skip, torch.zeros_like(state))
    assert relative_error(without[:, :4], y[:, :4]) > 0.1


def test_several_groups_serve_neighbouring_heads() -> None:
    torch.manual_seed(0)
    x = torch.randn(1, 12, 4, 3, dtype=torch.float64)
    ins, outs = torch.randn(2, 1, 12, 2, 5, dtype=torch.float64)
    a, skip = -torch.rand(1, 4, 12, dtype=torch.float64), torch.zeros(4, dtype=torch.float64)
    state = torch.zeros(1, 4, 3, 5, dtype=torch.float64)
    y, _ = load(64).reference(x, a, ins, outs, skip, state, chunk=5)
    for h in range(4):
        g = h // 2
        expected, _ = stepped(x[0, :, h], a[0, h], ins[0, :, g], outs[0, :, g], state[0, h])
        assert relative_error(y.unflatten(-1, (4, 3))[0, :, h], expected) < BOUND


def test_the_diagonal_block_restarts_in_every_chunk() -> None:
    x, a, ins, outs = upcast(draw(65))
    output = load(65).reference(x, a, ins, outs)
    zero = torch.zeros(16, 16, dtype=torch.float64)
    for b in range(2):
        for n in range(2):
            for h in range(4):
                g = h // 2
                expected, _ = stepped(
                    x[b, n, :, h], a[b, h, n], ins[b, n, :, g], outs[b, n, :, g], zero
                )
                assert relative_error(output[b, n, :, h], expected) < BOUND


def test_one_chunk_from_zero_without_skip_is_the_diagonal_block() -> None:
    x, a, ins, outs = upcast(draw(65))
    x, a, ins, outs = x[:, :1], a[:, :, :1], ins[:, :1], outs[:, :1]
    zeros = torch.zeros(4, dtype=torch.float64), torch.zeros(2, 4, 16, 16, dtype=torch.float64)
    y, _ = load(64).reference(x[:, 0], a[:, :, 0], ins[:, 0], outs[:, 0], *zeros, chunk=32)
    expected = load(65).reference(x, a, ins, outs)[:, 0].flatten(2)
    assert relative_error(y, expected) < BOUND


def mixed(given: list[Any], *, groups: int, norm_groups: int | None = None) -> torch.Tensor:
    """Return the Mamba-2 mixer's output for the first batch element, by loops."""
    hidden, w_in, conv, bias, dt_bias, a_log, skip, norm, w_out, low, high, eps = given
    heads, inner, convolved = len(a_log), len(norm), len(bias)
    n_tokens, width = hidden.shape[1], inner // heads
    z = hidden[0] @ w_in.t()
    gate, raw, dt = z[:, :inner], z[:, inner : inner + convolved], z[:, inner + convolved :]
    c = torch.zeros_like(raw)
    for t in range(n_tokens):
        c[t] = bias
        for j in range(4):
            if t - 3 + j >= 0:
                c[t] += conv[:, 0, j] * raw[t - 3 + j]
    c = c * torch.sigmoid(c)
    state_dim = (convolved - inner) // (2 * groups)
    ins = c[:, inner : inner + groups * state_dim].reshape(n_tokens, groups, state_dim)
    outs = c[:, inner + groups * state_dim :].reshape(n_tokens, groups, state_dim)
    y = torch.empty(n_tokens, inner, dtype=z.dtype)
    for h in range(heads):
        steps = torch.log1p(torch.exp(dt[:, h] + dt_bias[h])).clip(low, high)
        x, g = c[:, h * width : (h + 1) * width], h * groups // heads
        zero = torch.zeros(width, state_dim, dtype=z.dtype)
        read, _ = stepped(
            x * steps[:, None], -math.exp(a_log[h]) * steps, ins[:, g], outs[:, g], zero
        )
        y[:, h * width : (h + 1) * width] = read + skip[h] * x
    y = y * gate * torch.sigmoid(gate)
    rows = y.reshape(n_tokens, norm_groups or groups, -1)
    rows = rows / ((rows**2).mean(-1, keepdim=True) + eps).sqrt()
    return (rows.reshape(n_tokens, inner) * norm) @ w_out.t()


@pytest.mark.parametrize(("groups", "chunk"), [(8, 128), (2, 32)])
def test_the_mixer_is_its_loops(groups: int, chunk: int) -> None:
    given = upcast(draw(63))
    output = load(63).reference(*given, groups=groups, chunk=chunk)
    assert relative_error(output[0], mixed(given, groups=groups)) < BOUND


def test_one_norm_over_all_channels_would_differ() -> None:
    given = upcast(draw(63))
    output = load(63).reference(*given)
    assert relative_error(mixed(given, groups=8, norm_groups=1), output[0]) > 0.1


def test_some_time_steps_of_the_small_workload_reach_their_limits() -> None:
    given = upcast(draw(63))
    free = load(63).reference(*given[:9], 0.0, 1e6, given[-1])
    for low, high in ((given[9], 1e6), (0.0, given[10])):
        assert relative_error(load(63).reference(*given[:9], low, high, given[-1]), free) > 1e-3


def test_wkv_is_a_quotient_of_decayed_sums() -> None:
    decay, key, first, value, n, m, d = upcast(draw(66))
    wkv, *states = load(66).reference(decay, key, first, value, n, m, d)
    w = -decay.exp()
    for t in (0, 1, 17, 60):
        # The incoming state has decayed t times when token t is put out.
        weights = torch.stack([key[:, j] + (t - 1 - j) * w for j in range(t)] + [key[:, t] + first])
        faded = (m + t * w).exp()
        top = n * faded + (weights.exp() * value[:, : t + 1].transpose(0, 1)).sum(0)
        torch.testing.assert_close(wkv[:, t], top / (d * faded + weights.exp().sum(0)))
    n_tokens = key.shape[1]
    weights = torch.stack([key[:, j] + (n_tokens - 1 - j) * w for j in range(n_tokens)])
    start = m + n_tokens * w
    largest = torch.maximum(start, weights.amax(0))
    shifted = (weights - largest).exp()
    n_last = n * (start - largest).exp() + (shifted * value.transpose(0, 1)).sum(0)
    d_last = d * (start - largest).exp() + shifted.sum(0)
    for actual, expected in zip(states, (n_last, largest, d_last), strict=True):
        torch.testing.assert_close(actual, expected)


def test_wkv_of_huge_keys_stays_finite() -> None:
    decay, key, first, value, n, m, d = draw(66)
    for tensor in load(66).reference(decay, 200 * key, first, value, n, m, d):
        assert torch.isfinite(tensor).all()


def test_the_bonus_enters_the_output_alone() -> None:
    decay, key, first, value, *states = upcast(draw(66))
    wkv, *after = load(66).reference(decay, key, first, value, *states)
    other, *same = load(66).reference(decay, key, first + 1, value, *states)
    assert relative_error(other, wkv) > 0.1
    assert all(map(torch.equal, after, same))


def test_the_carried_state_is_felt_in_the_first_tokens() -> None:
    decay, key, first, value, n, m, d = upcast(draw(66))
    wkv = load(66).reference(decay, key, first, value, n, m, d)[0][:, :16]
    empty = load(66).reference(decay, key, first, value, 0 * n, m - 50, 0 * d)[0][:, :16]
    assert relative_error(empty, wkv) > 0.3
