"""Latent, ragged and sparse attention and the indexer against textbook loops in float64."""

import math
from itertools import pairwise
from typing import Any

import pytest
import torch

from tests.problems.loading import draw, load, relative_error, upcast


def attention(
    logits: list[torch.Tensor], values: list[torch.Tensor]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the weighted mean of the values, and log2 of the sum, one key after the other."""
    peak = max(float(logit) for logit in logits)
    shares = [math.exp(float(logit) - peak) for logit in logits]
    mean = sum(share * value for share, value in zip(shares, values, strict=True))
    in_bits = peak / math.log(2) + math.log2(sum(shares))
    assert isinstance(mean, torch.Tensor)
    return mean / sum(shares), torch.tensor(in_bits, dtype=torch.float64)


def assert_rows(found: tuple[torch.Tensor, ...], expected: tuple[torch.Tensor, ...]) -> None:
    for left, right in zip(found, expected, strict=True):
        torch.testing.assert_close(left, right, rtol=1e-11, atol=1e-12)


def latent_row(inputs: list[Any], query: int, head: int, rows: list[int]) -> Any:
    """Return what one query head makes of the given rows of the flattened caches."""
    q_nope, q_pe, ckv, kpe = inputs[:4]
    ckv, kpe = ckv.flatten(0, 1), kpe.flatten(0, 1)
    logits = [
        inputs[-1] * (ckv[row].dot(q_nope[query, head]) + kpe[row].dot(q_pe[query, head]))
        for row in rows
    ]
    return attention(logits, [ckv[row] for row in rows])


def test_latent_decode_attends_to_each_requests_pages() -> None:
    inputs = upcast(draw(14))
    output, lse = load(14).reference(*inputs)
    for request, (first, end) in enumerate(pairwise(inputs[4].tolist())):
        rows = inputs[5][first:end].tolist()
        for head in (0, 3):
            expected = latent_row(inputs, request, head, rows)
            assert_rows((output[request, head], lse[request, head]), expected)


def test_latent_prefill_lets_the_last_query_see_everything() -> None:
    inputs = upcast(draw(15))
    output, lse = load(15).reference(*inputs)
    queries, keys = inputs[4].tolist(), inputs[5].tolist()
    for (first, end), (slot, slot_end) in zip(pairwise(queries), pairwise(keys), strict=True):
        for query in range(first, end):
            n_seen = (slot_end - slot) - (end - 1 - query)
            rows = inputs[6][slot : slot + n_seen].tolist()
            expected = latent_row(inputs, query, 2, rows)
            assert_rows((output[query, 2], lse[query, 2]), expected)


def test_ragged_prefill_has_values_of_their_own_width() -> None:
    inputs = upcast(draw(16))
    q, k, v, queries, keys, scale = inputs
    output, lse = load(16).reference(*inputs)
    assert output.shape == (28, 4, 16)
    bounds = zip(pairwise(queries.tolist()), pairwise(keys.tolist()), strict=True)
    for (first, end), (slot, slot_end) in bounds:
        for query in range(first, end):
            seen = range(slot, slot_end - (end - 1 - query))
            logits = [scale * k[key, 1].dot(q[query, 1]) for key in seen]
            expected = attention(logits, [v[key, 1] for key in seen])
            assert_rows((output[query, 1], lse[query, 1]), expected)


def test_sparse_attention_sees_the_listed_rows_alone() -> None:
    inputs = upcast(draw(17))
    output, lse = load(17).reference(*inputs)
    for token, line in enumerate(inputs[4].tolist()):
        rows = [row for row in line if row >= 0]
        for head in (0, 3):
            expected = latent_row(inputs, token, head, rows)
            assert_rows((output[token, head], lse[token, head]), expected)


def test_a_request_of_no_tokens_gets_zero_and_minus_infinity() -> None:
    inputs = draw(14)
    inputs[4] = torch.tensor([0, 2, 2, 3, 3, 3], dtype=torch.int32)
    output, lse = load(14).reference(*inputs[:5], inputs[5][:3], inputs[6])
    assert (output[[1, 3, 4]] == 0).all()
    assert (lse[[1, 3, 4]] == -math.inf).all()
    assert torch.isfinite(lse[[0, 2]]).all()


def test_a_request_of_one_token_returns_its_latent_and_its_logit() -> None:
    inputs = draw(14)
    q_nope, q_pe, ckv, kpe, indptr, indices, scale = upcast(inputs)
    output, lse = load(14).reference(*inputs)
    page = int(indices[int(indptr[1])])
    assert torch.equal(output[1, 0], inputs[2][page, 0])
    logit = scale * (q_nope[1, 0].dot(ckv[page, 0]) + q_pe[1, 0].dot(kpe[page, 0]))
    assert float(lse[1, 0]) == pytest.approx(float(logit) / math.log(2), rel=1e-5)


@pytest.mark.parametrize(("number", "indices"), [(14, 5), (15, 6)])
def test_unreferenced_pages_may_hold_anything(number: int, indices: int) -> None:
    inputs = draw(number)
    before = load(number).reference(*inputs)
    unused = torch.ones(inputs[2].shape[0], dtype=torch.bool)
    unused[inputs[indices].long()] = False
    for cache in inputs[2:4]:
        cache[unused] = math.nan
    assert all(map(torch.equal, load(number).reference(*inputs), before))


def test_unlisted_rows_may_hold_anything_row_zero_too() -> None:
    inputs = draw(17)
    rows = inputs[4][inputs[4] >= 0].long()
    # Row 0 is what a careless gather reads in place of -1.
    inputs[4] = torch.where(
        inputs[4] == 0, int(set(range(320)).difference(rows.tolist()).pop()), inputs[4]
    )
    before = load(17).reference(*inputs)
    unused = torch.ones(320, dtype=torch.bool)
    unused[inputs[4][inputs[4] >= 0].long()] = False
    assert unused[0]
    for cache in inputs[2:4]:
        cache.view(320, -1)[unused] = math.nan
    assert all(map(torch.equal, load(17).reference(*inputs), before))


@pytest.mark.parametrize(("number", "indices"), [(14, 5), (15, 6)])
def test_ignoring_the_page_table_would_be_far_off(number: int, indices: int) -> None:
    inputs = draw(number)
    right, _ = load(number).reference(*inputs)
    inputs[indices] = torch.arange(len(inputs[indices]), dtype=torch.int32)
    assert relative_error(load(number).reference(*inputs)[0], right) > 0.5


def test_leaving_out_the_rotary_keys_would_be_far_off() -> None:
    inputs = draw(14)
    right, _ = load(14).reference(*inputs)
    inputs[3].zero_()
    assert relative_error(load(14).reference(*inputs)[0], right) > 0.1


def test_selected_rows_ascend_are_distinct_and_stand_left() -> None:
    indices = draw(17)[4]
    sizes = load(17).WORKLOADS["smoke"]
    for line, positions in zip(indices.tolist(), sizes.positions, strict=True):
        chosen, rest = line[: len(positions)], line[len(positions) :]
        assert sorted(set(chosen)) == chosen
        assert set(rest) <= {-1}
        assert 0 <= chosen[0] <= chosen[-1] < sizes.n_pages * sizes.page_size


def test_the_long_selection_is_the_captured_one() -> None:
    positions = load(17).WORKLOADS["full"].positions
    assert sum(map(len, positions)) == 11_837
    assert len(positions[2]) == len(set(positions[2])) == 2_048
    assert list(positions[2]) == sorted(positions[2])
    assert positions[2][-1] == 2_160


def indexed(inputs: list[Any], request: int, topk: int) -> list[int]:
    """Score one request's tokens from the bytes of their pages, and list the best by position."""
    q, cache, weights, lengths, table = inputs
    page_size, dim = cache.shape[1], q.shape[2]
    scores = []
    for position in range(int(lengths[request])):
        page = cache[int(table[request, position // page_size])].flatten()
        token = position % page_size
        value = page[token * dim :][:dim].view(torch.float8_e4m3fn).double()
        scale = page[page_size * dim + 4 * token :][:4].view(torch.float32).double()
        hits = [max(0.0, float(value.dot(head) * scale)) for head in q[request].double()]
        scores.append(
            math.fsum(w * hit for w, hit in zip(weights[request].tolist(), hits, strict=True))
        )
    best = sorted(range(len(scores)), key=lambda position: -scores[position])[:topk]
    return [
        int(table[request, position // page_size]) * page_size + position % page_size
        for position in sorted(best)
    ]


def test_the_indexer_selects_the_best_rows_in_the_order_of_positions() -> None:
    inputs = draw(18, "smoke_2")
    (rows,) = load(18).reference(*inputs, topk=32)
    assert rows.shape == (5, 32)
    for request in range(5):
        expected = indexed(inputs, request, 32)
        assert rows[request].tolist() == expected + [-1] * (32 - len(expected))
    # The pages of a request are in no order, and the rows follow the positions.
    assert rows[2].tolist() != sorted(rows[2].tolist())


def test_more_than_topk_tokens_leave_the_worst_out() -> None:
    inputs = draw(18)
    (rows,) = load(18).reference(*inputs)
    assert rows.dtype is torch.int32
    assert rows[2].tolist() == indexed(inputs, 2, 2_048)
    assert (rows >= 0).sum(dim=1).tolist() == [7, 1, 2_048, 32, 16]


def test_page_zero_and_rows_behind_the_end_may_hold_anything() -> None:
    inputs = draw(18, "smoke_2")
    before = load(18).reference(*inputs, topk=32)[0]
    _, cache, _, lengths, table = inputs
    cache[0] = -1  # all bits set is NaN in both formats
    page_size, dim = cache.shape[1], 32
    last = cache[int(table[2, int(lengths[2]) // page_size])].view(-1)
    first_unused = int(lengths[2]) % page_size
    last[first_unused * dim : page_size * dim] = -1
    last[page_size * dim + 4 * first_unused :] = -1
    assert torch.equal(load(18).reference(*inputs, topk=32)[0], before)


def test_negative_weights_make_the_rectifier_matter() -> None:
    q, cache, weights, lengths, table = draw(18, "smoke_2")
    assert (weights < 0).any()
    chosen = load(18).reference(q, cache, weights, lengths, table, topk=32)[0]
    assert not torch.equal(
        load(18).reference(q, cache, weights.abs(), lengths, table, topk=32)[0], chosen
    )


def test_undecided_draws_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load(18), "DECISION_MARGIN", 1e6)
    with pytest.raises(ValueError, match=r"rank 32 still exceeds .* after 16 draws"):
        draw(18, "smoke_2")


@pytest.mark.parametrize(
    ("number", "n_queries", "n_keys"), [(15, 1_954, 2_044), (16, 2_885, 19_013)]
)
def test_published_offsets_have_the_stated_totals(number: int, n_queries: int, n_keys: int) -> None:
    full = load(number).WORKLOADS["full"]
    assert (full.qo_indptr[-1], full.kv_indptr[-1]) == (n_queries, n_keys)


@pytest.mark.parametrize("number", [15, 16])
@pytest.mark.parametrize("workload", ["heldout_1", "heldout_2", "heldout_3"])
def test_every_sequence_has_at_least_as_many_keys_as_queries(number: int, workload: str) -> None:
    sizes = load(number).WORKLOADS[workload]
    lengths = zip(pairwise(sizes.qo_indptr), pairwise(sizes.kv_indptr), strict=True)
    assert all(end - first <= slot_end - slot for (first, end), (slot, slot_end) in lengths)
