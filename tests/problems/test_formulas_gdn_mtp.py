"""Gated-delta-rule draft tokens against a system of equations per request and head."""

import torch

from tests.problems.loading import load, relative_error
from tests.problems.recurrences import BOUND, gdn_head, gdn_inputs, solved


def test_draft_tokens_solve_the_system_of_their_pool_row() -> None:
    given = gdn_inputs(73)
    output, final_state = load(73).reference(*given.values())
    for r, row in enumerate(given["rows"].tolist()):
        for h in range(4):
            expected, _ = solved(given["state"][row, h].t(), *gdn_head(given, r, h))
            assert relative_error(output[r, :, h], expected) < BOUND
    assert torch.equal(final_state, given["state"])
    assert final_state.data_ptr() != given["state"].data_ptr()


def test_drafting_one_token_is_decode() -> None:
    decode = gdn_inputs(72)
    given = [*decode.values()]
    rows = torch.tensor([2, 0, 3, 1], dtype=torch.int32)
    pool = torch.empty_like(decode["state"])
    pool[rows.long()] = decode["state"]
    output, _ = load(73).reference(*given[:3], pool, rows, *given[4:])
    torch.testing.assert_close(output, load(72).reference(*given)[0])


def test_a_pool_advanced_in_place_would_be_told() -> None:
    given = gdn_inputs(73)
    rows = given["rows"].long()
    _, advanced = solved(given["state"][rows[0], 0].t(), *gdn_head(given, 0, 0))
    assert relative_error(advanced.t(), given["state"][rows[0], 0]) > 0.3


def test_pool_rows_are_distinct_and_gates_use_the_first_constants() -> None:
    module, given = load(73), gdn_inputs(73)
    assert given["A_log"].tolist() == list(module.A_LOG[:4])
    assert given["dt_bias"].tolist() == list(module.DT_BIAS[:4])
    assert len(module.A_LOG) == len(module.DT_BIAS) == 16
    assert len(set(given["rows"].tolist())) == 3
    assert given["rows"].dtype is torch.int32
