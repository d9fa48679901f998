"""Recurrences with a matrix state, against one system of equations over all tokens, in float64."""

import pytest
import torch

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
