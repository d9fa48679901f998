"""Paged and ragged grouped-query attention: published lengths, shapes and page tables."""

from itertools import pairwise

import pytest
import torch

from problems import catalog
from problems.attention import batches
from problems.attention.batches import Batch, behind_prefixes, with_lengths
from tests.problems.loading import draw, load

NUMBERS = tuple(range(1, 10))
PAGED = NUMBERS[:7]


def counts(batch: Batch) -> tuple[list[int], list[int]]:
    return list(batches.query_counts(batch)), list(batches.key_counts(batch))


@pytest.mark.parametrize(
    ("number", "n_sequences", "queries", "keys"),
    [
        # Of queries and of keys: total, fewest and most per sequence, as specified.
        (1, 64, (64, 1, 1), (58_966, 509, 3_172)),
        (2, 63, (63, 1, 1), (19_134, 4, 5_668)),
        # 64 (27222 - 64) + 64; 64 * 12 + 1; 64 * 2675 + 1
        (3, 64, (64, 1, 1), (1_738_176, 769, 171_201)),
        (4, 27, (16_372, 145, 1_250), (16_372, 145, 1_250)),
        (5, 54, (10_847, 1, 5_139), (10_945, 3, 5_140)),
        (6, 15, (6_069, 167, 602), (387_471, 10_625, 38_465)),
        (7, 15, (969, 3, 340), (61_071, 129, 21_697)),
        (8, 71, (15_687, 1, 2_678), (17_699, 14, 2_678)),
        (9, 63, (3_053, 13, 102), (4_841, 19, 147)),
    ],
)
def test_the_published_lengths_are_the_stated_ones(
    number: int, n_sequences: int, queries: tuple[int, int, int], keys: tuple[int, int, int]
) -> None:
    for lengths, stated in zip(counts(load(number).FULL), (queries, keys), strict=True):
        assert len(lengths) == n_sequences
        assert (sum(lengths), min(lengths), max(lengths)) == stated


@pytest.mark.parametrize("number", NUMBERS)
def test_every_query_sees_a_key_unless_there_is_none(number: int) -> None:
    for batch in load(number).WORKLOADS.values():
        for n, m in zip(*counts(batch), strict=True):
            assert m >= n or m == 0
            assert m > 0 or "ps64" not in catalog.find(str(number)).slug


@pytest.mark.parametrize(
    ("number", "shapes"),
    [
        (1, [(64, 32, 128), *[(68_237, 1, 8, 128)] * 2, (65,), (58_966,)]),
        (2, [(63, 5, 128), *[(53_173, 1, 1, 128)] * 2, (64,), (19_134,)]),
        (3, [(64, 32, 128), *[(29_441, 64, 8, 128)] * 2, (65,), (27_222,), (64,)]),
        (4, [(16_372, 24, 128), *[(77_646, 1, 8, 128)] * 2, (28,), (28,), (16_372,)]),
        (5, [(10_847, 5, 128), *[(44_264, 1, 1, 128)] * 2, (55,), (55,), (10_945,)]),
        (6, [(6_069, 24, 128), *[(32_757, 64, 8, 128)] * 2, (16,), (16,), (6_069,), (15,)]),
        (7, [(969, 16, 128), *[(4_166, 64, 1, 128)] * 2, (16,), (16,), (969,), (15,)]),
        (8, [(15_687, 16, 128), *[(17_699, 2, 128)] * 2, (72,), (72,)]),
        (9, [(3_053, 8, 256), *[(4_841, 1, 256)] * 2, (64,), (64,)]),
    ],
)
def test_the_published_inputs_have_the_stated_shapes(
    number: int, shapes: list[tuple[int, ...]]
) -> None:
    *tensors, _scale = load(number).make_inputs("full", "meta")
    assert [tuple(tensor.shape) for tensor in tensors] == shapes
    n_floating = sum(tensor.dtype is torch.bfloat16 for tensor in tensors)
    n_integers = sum(tensor.dtype is torch.int32 for tensor in tensors)
    assert (n_floating, n_integers) == (3, len(shapes) - 3)


@pytest.mark.parametrize("number", NUMBERS)
def test_every_workload_has_tables_of_matching_lengths(number: int) -> None:
    module = load(number)
    for name, batch in module.WORKLOADS.items():
        n_sequences = len(batch.kv_indptr) - 1
        inputs = module.make_inputs(name, "meta")
        tables = [tuple(x.shape) for x in inputs if getattr(x, "dtype", None) is torch.int32]
        n_offsets = 1 if batch.qo_indptr is None else 2
        expected = [(n_sequences + 1,)] * n_offsets
        expected += [(batch.kv_indptr[-1],)] * (batch.n_pages is not None)
        expected += [(n_sequences,)] * (batch.kv_last_page_len is not None)
        assert tables == expected
        assert batch.n_query_heads % batch.n_kv_heads == 0
        assert batch.n_pages is None or batch.n_pages >= batch.kv_indptr[-1]
        assert all(begin <= end for begin, end in pairwise(batch.kv_indptr))
        assert all(1 <= rows <= batch.page_size for rows in batch.kv_last_page_len or ())


@pytest.mark.parametrize("number", PAGED)
def test_page_ids_of_a_draw_are_distinct_unordered_and_redrawn(number: int) -> None:
    batch = load(number).WORKLOADS["smoke"]
    at = 3 + (1 if batch.qo_indptr is None else 2)
    pages, other = draw(number)[at].tolist(), draw(number, seed=8)[at].tolist()
    assert len(set(pages)) == len(pages) == batch.kv_indptr[-1]
    assert min(pages) >= 0
    assert max(pages) < batch.n_pages
    assert pages != sorted(pages)
    assert pages != other


def test_other_lengths_keep_the_geometry_and_bring_spare_pages() -> None:
    paged = Batch(kv_indptr=(0,), n_pages=0, n_query_heads=6, n_kv_heads=2)
    longer = with_lengths(paged, (4, 0, 3), queries=(1, 0, 3))
    assert (longer.kv_indptr, longer.qo_indptr) == ((0, 4, 4, 7), (0, 1, 1, 4))
    assert (longer.n_pages, longer.n_query_heads) == (7 + 1_024, 6)
    assert behind_prefixes(paged, (1, 0, 3), (3, 0, 0)) == longer
    packed = Batch(kv_indptr=(0,), n_query_heads=6, n_kv_heads=2)
    assert behind_prefixes(packed, (5, 2)).kv_indptr == (0, 5, 7)
    assert behind_prefixes(packed, (5, 2)).n_pages is None


def test_the_work_is_counted_on_visible_pairs() -> None:
    batch = Batch(
        kv_indptr=(0, 2, 3),
        qo_indptr=(0, 2, 3),
        n_pages=9,
        page_size=4,
        kv_last_page_len=(1, 4),
        n_query_heads=6,
        n_kv_heads=2,
    )
    assert batches.key_counts(batch) == (5, 4)
    # The first sequence has 4 + 1 keys, so its queries see 4 and 5: 9 pairs, and 4 more.
    assert batches.flops(batch) == 4 * 13 * 6 * 128
    # 9 keys, 3 queries and outputs with 6 lse each; 3 + 3 + 3 + 2 table entries.
    assert batches.bytes_moved(batch) == 2 * 9 * 2 * 128 * 2 + 3 * 6 * (2 * 256 + 4) + 4 * 11
