"""Batches of grouped-query attention: their sizes, their draws and the work they ask for."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import torch

from problems.sequences import offsets

SPARE_PAGES = 1_024


@dataclass(frozen=True, kw_only=True)
class Batch:
    """One workload: sequences that keep keys and values in a paged pool or in packed rows.

    Attributes:
        kv_indptr: sequence b owns slots kv_indptr[b] up to kv_indptr[b + 1] of the page table,
            or those packed rows.
        qo_indptr: likewise the packed queries; None for one query per sequence and no such input.
        n_pages: pages in the pool, referenced or not; None for packed rows.
        kv_last_page_len: rows that count in each sequence's last page; all other pages are full.
            None where no such input exists: every slot is then one token.
    """

    kv_indptr: tuple[int, ...]
    qo_indptr: tuple[int, ...] | None = None
    n_pages: int | None = None
    page_size: int = 1
    kv_last_page_len: tuple[int, ...] | None = None
    n_query_heads: int
    n_kv_heads: int
    head_dim: int = 128
    sm_scale: float = 0.08838834764831843


def with_lengths(
    batch: Batch,
    kv: Sequence[int],
    *,
    queries: Sequence[int] | None = None,
    last_page_len: tuple[int, ...] | None = None,
) -> Batch:
    """Return the batch with other sequences, and SPARE_PAGES pages more than they use.

    `kv` counts pages where the batch has a pool, tokens where rows are packed.
    """
    kv_indptr = offsets(kv)
    return replace(
        batch,
        kv_indptr=kv_indptr,
        qo_indptr=None if queries is None else offsets(queries),
        n_pages=None if batch.n_pages is None else kv_indptr[-1] + SPARE_PAGES,
        kv_last_page_len=last_page_len,
    )


def behind_prefixes(
    batch: Batch, queries: Sequence[int], prefixes: Sequence[int] | None = None
) -> Batch:
    """Return the batch with other sequences: `prefixes` (none) tokens, then the queries' own."""
    before = prefixes or (0,) * len(queries)
    kv = [prefix + n for prefix, n in zip(before, queries, strict=True)]
    return with_lengths(batch, kv, queries=queries)


def draw(batch: Batch, device: str) -> list[Any]:
    """Draw q, keys, values, the tables the batch has and sm_scale; the seed is the caller's.

    The tables are qo_indptr, kv_indptr, kv_indices and kv_last_page_len, in this order. Page ids
    of a draw are distinct, unordered and differ from draw to draw; the other tables never change.
    """
    rows = (batch.kv_indptr[-1],) if batch.n_pages is None else (batch.n_pages, batch.page_size)
    queries = (_n_queries(batch), batch.n_query_heads, batch.head_dim)
    stored = (*rows, batch.n_kv_heads, batch.head_dim)
    inputs: list[Any] = [
        torch.randn(shape, dtype=torch.bfloat16, device=device)
        for shape in (queries, stored, stored)
    ]

    def table(entries: tuple[int, ...]) -> torch.Tensor:
        return torch.tensor(entries, dtype=torch.int32, device=device)

    if batch.qo_indptr is not None:
        inputs.append(table(batch.qo_indptr))
    inputs.append(table(batch.kv_indptr))
    if batch.n_pages is not None:
        pages = torch.randperm(batch.n_pages, device=device)[: batch.kv_indptr[-1]]
        inputs.append(pages.to(torch.int32))
    if batch.kv_last_page_len is not None:
        inputs.append(table(batch.kv_last_page_len))
    return [*inputs, batch.sm_scale]


def key_counts(batch: Batch) -> tuple[int, ...]:
    """Return the number of keys of each sequence."""
    slots = [end - begin for begin, end in pairwise(batch.kv_indptr)]
    if batch.kv_last_page_len is None:
        return tuple(slots)
    last = zip(slots, batch.kv_last_page_len, strict=True)
    return tuple(batch.page_size * (n_pages - 1) + rows for n_pages, rows in last)


def query_counts(batch: Batch) -> tuple[int, ...]:
    """Return the number of queries of each sequence."""
    if batch.qo_indptr is None:
        return (1,) * (len(batch.kv_indptr) - 1)
    return tuple(end - begin for begin, end in pairwise(batch.qo_indptr))


def bytes_moved(batch: Batch) -> int:
    """Return the bytes of referenced keys and values, queries, tables and outputs, once each."""
    keys_and_values = 2 * sum(key_counts(batch)) * batch.n_kv_heads * batch.head_dim * 2
    query_rows = _n_queries(batch) * batch.n_query_heads
    queries_and_outputs = query_rows * (2 * batch.head_dim * 2 + 4)
    entries = len(batch.kv_indptr) + len(batch.qo_indptr or ()) + len(batch.kv_last_page_len or ())
    if batch.n_pages is not None:
        entries += batch.kv_indptr[-1]
    return keys_and_values + queries_and_outputs + 4 * entries


def flops(batch: Batch) -> int:
    """Return the operations of both products on the visible pairs of query and key.

    The last of n queries sees all m keys and each one before it a key less.
    """
    counts = zip(query_counts(batch), key_counts(batch), strict=True)
    pairs = sum(n * m - n * (n - 1) // 2 for n, m in counts)
    return 4 * pairs * batch.n_query_heads * batch.head_dim


def _n_queries(batch: Batch) -> int:
    return len(batch.kv_indptr) - 1 if batch.qo_indptr is None else batch.qo_indptr[-1]
