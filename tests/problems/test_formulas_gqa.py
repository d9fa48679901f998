"""Paged and ragged grouped-query attention against loops over sequences, queries and heads."""

import inspect
import math
from itertools import chain, pairwise
from typing import Any

import pytest
import torch

from problems.attention import causal
from tests.problems.loading import draw, load, relative_error, upcast

PAGED = (1, 2, 3, 4, 5, 6, 7)
PREFILL = (4, 5, 6, 7, 8, 9)
NUMBERS = (*PAGED, 8, 9)
SMOKE = [*((number, "smoke") for number in NUMBERS), (3, "smoke_2"), (4, "smoke_2")]
SCALE = 128**-0.5
each_smoke = pytest.mark.parametrize(("number", "workload"), SMOKE)
each_prefill = pytest.mark.parametrize("number", PREFILL)


def named(number: int, workload: str = "smoke") -> dict[str, Any]:
    names = inspect.signature(load(number).reference).parameters
    return dict(zip(names, upcast(draw(number, workload)), strict=True))


def answer(number: int, given: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    output, lse = load(number).reference(**given)
    return output, lse


def token_rows(given: dict[str, Any]) -> list[list[tuple[int, ...]]]:
    """Return where the tokens of each sequence lie, one (page, row) or (row,) after the other."""
    sequences = []
    for b, (begin, end) in enumerate(pairwise(given["kv_indptr"].tolist())):
        if "k" in given:
            sequences.append([(row,) for row in range(begin, end)])
            continue
        places = []
        for slot in range(begin, end):
            rows = given["k_cache"].shape[1]
            if slot == end - 1 and "kv_last_page_len" in given:
                rows = int(given["kv_last_page_len"][b])
            places += [(int(given["kv_indices"][slot]), row) for row in range(rows)]
        sequences.append(places)
    return sequences


def query_rows(given: dict[str, Any]) -> list[range]:
    if "qo_indptr" not in given:
        return [range(b, b + 1) for b in range(given["q"].shape[0])]
    return [range(begin, end) for begin, end in pairwise(given["qo_indptr"].tolist())]


def pools(given: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    keys, values = given.get("k", given.get("k_cache")), given.get("v", given.get("v_cache"))
    assert keys is not None
    assert values is not None
    return keys, values


@each_smoke
def test_it_is_softmax_attention_query_by_query_and_head_by_head(
    number: int, workload: str
) -> None:
    given = named(number, workload)
    output, lse = answer(number, given)
    keys, values = pools(given)
    group = given["q"].shape[1] // keys.shape[-2]
    for rows, places in zip(query_rows(given), token_rows(given), strict=True):
        k = torch.stack([keys[place] for place in places])
        v = torch.stack([values[place] for place in places])
        for i, row in enumerate(rows):
            n_seen = len(places) - len(rows) + i + 1
            for head in range(given["q"].shape[1]):
                logits = k[:n_seen, head // group] @ given["q"][row, head] * given["sm_scale"]
                total = torch.exp(logits).sum()
                weighted = torch.exp(logits) / total @ v[:n_seen, head // group]
                torch.testing.assert_close(output[row, head], weighted, rtol=1e-10, atol=1e-12)
                in_bits = torch.log2(total)
                torch.testing.assert_close(lse[row, head], in_bits, rtol=1e-10, atol=1e-12)


def test_a_sequence_longer_than_a_block_of_queries_is_attended_as_a_whole() -> None:
    torch.manual_seed(0)
    q = torch.randn(600, 6, 8, dtype=torch.float64)
    k, v = torch.randn(2, 607, 2, 8, dtype=torch.float64)
    bounds = torch.tensor([0, 600]), torch.tensor([0, 607])
    output, _ = causal.attend(q, causal.packed(k, v, *bounds), 0.3)
    expected = torch.nn.functional.scaled_dot_product_attention(
        *(x.transpose(0, 1).unsqueeze(0) for x in (q, k, v)),
        attn_mask=torch.ones(600, 607, dtype=torch.bool).tril(7),
        scale=0.3,
        enable_gqa=True,
    )
    torch.testing.assert_close(output, expected[0].transpose(0, 1), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("number", "workload"),
    [(2, "heldout_2"), (3, "heldout_3"), (5, "heldout_2"), (6, "heldout_3")],
)
def test_held_out_batches_agree_with_the_librarys_attention(number: int, workload: str) -> None:
    given = named(number, workload)
    output, _ = answer(number, given)
    for rows, places in zip(query_rows(given), token_rows(given), strict=True):
        at = tuple(torch.tensor(places).unbind(1))
        packed = (given["q"][rows.start : rows.stop], *(pool[at] for pool in pools(given)))
        expected = torch.nn.functional.scaled_dot_product_attention(
            *(x.transpose(0, 1).unsqueeze(0) for x in packed),
            attn_mask=torch.ones(len(rows), len(places), dtype=torch.bool).tril(
                len(places) - len(rows)
            ),
            scale=given["sm_scale"],
            enable_gqa=True,
        )
        actual = output[rows.start : rows.stop].transpose(0, 1)
        torch.testing.assert_close(actual, expected[0], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("number", PAGED)
def test_reading_the_pool_without_the_page_table_is_far_off(number: int) -> None:
    given = named(number)
    right, _ = answer(number, given)
    given["kv_indices"] = torch.arange(len(given["kv_indices"]), dtype=torch.int32)
    assert relative_error(answer(number, given)[0], right) > 0.5


@each_smoke
def test_rows_that_no_sequence_owns_are_never_read(number: int, workload: str) -> None:
    given = named(number, workload)
    before = answer(number, given)
    for pool in pools(given):
        owned = torch.zeros(pool.shape[:-2], dtype=torch.bool)
        for place in chain.from_iterable(token_rows(given)):
            owned[place] = True
        pool[~owned] = math.nan
        assert number in {8, 9} or not owned.all()
    assert all(map(torch.equal, answer(number, given), before))


@pytest.mark.parametrize("number", NUMBERS)
def test_a_sequence_reads_no_other(number: int) -> None:
    given = named(number)
    before = answer(number, given)
    for pool in pools(given):
        for place in token_rows(given)[1]:
            pool[place] = math.nan
    after = answer(number, given)
    others = [row for b, rows in enumerate(query_rows(given)) if b != 1 for row in rows]
    for left, right in zip(after, before, strict=True):
        assert torch.equal(left[others], right[others])
        assert left[query_rows(given)[1].start].isnan().all()


@each_prefill
def test_the_newest_key_changes_the_newest_query_alone(number: int) -> None:
    given = named(number)
    before = answer(number, given)
    for pool in pools(given):
        for places in token_rows(given):
            pool[places[-1]] += 1
    newest = {rows.stop - 1 for rows in query_rows(given)}
    for left, right in zip(answer(number, given), before, strict=True):
        changed = (left != right).flatten(1).any(dim=1).nonzero().flatten().tolist()
        assert set(changed) == newest


def test_the_first_query_of_a_prompt_gets_the_first_value_and_its_own_logit() -> None:
    given = named(4)
    output, lse = answer(4, given)
    page = given["kv_indices"][0]
    torch.testing.assert_close(output[0, 5], given["v_cache"][page, 0, 1])
    logit = given["k_cache"][page, 0, 1] @ given["q"][0, 5] * given["sm_scale"]
    torch.testing.assert_close(lse[0, 5], logit / math.log(2))


@pytest.mark.parametrize("number", [1, 4, 8])
def test_a_kv_head_serves_a_run_of_neighbouring_query_heads(number: int) -> None:
    given = named(number)
    before, _ = answer(number, given)
    values = pools(given)[1]
    values[..., 1, :] += 1
    n_heads, n_kv_heads = given["q"].shape[1], values.shape[-2]
    changed = (answer(number, given)[0] != before).transpose(0, 1).flatten(1).any(dim=1)
    assert changed.nonzero().flatten().tolist() == list(range(n_heads // n_kv_heads, n_heads))


@pytest.mark.parametrize("number", NUMBERS)
def test_the_scale_is_the_argument(number: int) -> None:
    given = named(number)
    right = answer(number, given)
    given |= {"q": given["q"] / 2, "sm_scale": given["sm_scale"] * 2}
    for left, expected in zip(answer(number, given), right, strict=True):
        torch.testing.assert_close(left, expected)


def test_heads_256_wide_keep_the_scale_of_128() -> None:
    assert load(9).FULL.head_dim == 256
    assert draw(9)[-1] == pytest.approx(SCALE, rel=1e-15)


@pytest.mark.parametrize("number", [1, 4, 8])
def test_without_keys_there_is_zero_and_minus_infinity(number: int) -> None:
    given = named(number)
    given["kv_indptr"][2:] = given["kv_indptr"][1]
    if "kv_indices" in given:
        given["kv_indices"] = given["kv_indices"][: given["kv_indptr"][-1]]
    rows = query_rows(given)
    output, lse = answer(number, given)
    assert torch.isfinite(lse[: rows[0].stop]).all()
    assert (output[rows[1].start :] == 0).all()
    assert (lse[rows[1].start :] == -math.inf).all()


@each_prefill
def test_a_sequence_without_queries_contributes_nothing(number: int) -> None:
    given = named(number)
    before = answer(number, given)
    n_first = int(given["qo_indptr"][1])
    given["qo_indptr"] = given["qo_indptr"] - n_first
    given["qo_indptr"][0] = 0
    given["q"] = given["q"][n_first:]
    for left, right in zip(answer(number, given), before, strict=True):
        torch.testing.assert_close(left, right[n_first:])
