"""Causal grouped-query attention, one sequence after the other, over a paged pool or packed rows.

The lengths come to the host once, in one transfer: a sequence's logits are one dense block, and
no tensor is as long as all sequences together times the heads.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

# Bounds the logits held at a time; nothing else depends on it.
_QUERIES_AT_ONCE = 512


@dataclass(frozen=True)
class Tokens:
    """One sequence: its rows of the packed queries, and its keys and values in token order.

    Keys and values are [keys, kv heads, dim].
    """

    queries: slice
    keys: torch.Tensor
    values: torch.Tensor


def attend(
    q: torch.Tensor, sequences: Iterator[Tokens], sm_scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (output, lse) of softmax attention inside each sequence, the last query seeing all.

    Query i of n sees key j of m if j <= i + m - n. Query head h reads kv head h // G. Everything
    is computed in float32, or in float64 where q has it.

    Returns:
        output: the shape and dtype of q; zero for the queries of a sequence without keys.
        lse: [queries, query heads], base-2 logarithm of the softmax denominator in the dtype of
            the computation; -inf for the queries of a sequence without keys.
    """
    wide = torch.promote_types(q.dtype, torch.float32)
    output = torch.zeros_like(q)
    lse = torch.full(q.shape[:2], -torch.inf, dtype=wide, device=q.device)
    for tokens in sequences:
        n_keys, n_queries = tokens.keys.shape[0], tokens.queries.stop - tokens.queries.start
        if n_keys == 0:
            continue
        keys, values = tokens.keys.to(wide), tokens.values.to(wide)
        for first in range(0, n_queries, _QUERIES_AT_ONCE):
            stop = min(first + _QUERIES_AT_ONCE, n_queries)
            last_seen = torch.arange(first, stop, device=q.device) + (n_keys - n_queries)
            rows = slice(tokens.queries.start + first, tokens.queries.start + stop)
            sums, denominators = _attend_block(
                q[rows].to(wide), keys, values, last_seen=last_seen, sm_scale=sm_scale
            )
            output[rows], lse[rows] = sums.to(q.dtype), denominators
    return output, lse


def _attend_block(
    q: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    *,
    last_seen: torch.Tensor,
    sm_scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (output, lse) of queries that see the keys up to number last_seen, [queries]."""
    n_queries, n_heads, dim = q.shape
    n_kv_heads = keys.shape[1]
    # [kv heads, group * queries, dim], so that the heads of a group share one product.
    grouped = q.view(n_queries, n_kv_heads, -1, dim).permute(1, 2, 0, 3).flatten(1, 2)
    logits = grouped @ keys.permute(1, 2, 0) * sm_scale
    hidden = torch.arange(keys.shape[0], device=q.device) > last_seen.unsqueeze(-1)
    logits.view(n_kv_heads, -1, *hidden.shape).masked_fill_(hidden, -torch.inf)

    lse = torch.logsumexp(logits, dim=-1) / math.log(2)
    output = torch.softmax(logits, dim=-1) @ values.transpose(0, 1)
    by_query = output.view(n_heads, n_queries, dim).transpose(0, 1)
    return by_query, lse.view(n_heads, n_queries).t()


def paged(
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    kv_indices: torch.Tensor,
    kv_indptr: torch.Tensor,
    *,
    qo_indptr: torch.Tensor | None = None,
    kv_last_page_len: torch.Tensor | None = None,
) -> Iterator[Tokens]:
    """Yield the sequences of pools [pages, page size, kv heads, dim].

    Sequence b owns pages kv_indices[kv_indptr[b]] up to, not including, kv_indptr[b + 1], in
    token order. All are full but the last, of which the first kv_last_page_len[b] rows count;
    None, for pages of one token, says that it is full too. Without qo_indptr sequence b has
    the one query b.
    """
    n_sequences = kv_indptr.shape[0] - 1
    if qo_indptr is None:
        qo_indptr = torch.arange(n_sequences + 1, dtype=kv_indptr.dtype, device=kv_indptr.device)
    page_size = k_cache.shape[1]
    n_slots = kv_indptr[1:] - kv_indptr[:-1]
    missing = 0 if kv_last_page_len is None else page_size - kv_last_page_len
    n_keys = n_slots * page_size - missing
    query_bounds, slot_bounds, counts = _to_host(qo_indptr, kv_indptr, n_keys)
    for b in range(n_sequences):
        pages = kv_indices[slot_bounds[b] : slot_bounds[b + 1]].long()
        yield Tokens(
            slice(query_bounds[b], query_bounds[b + 1]),
            k_cache[pages].flatten(0, 1)[: counts[b]],
            v_cache[pages].flatten(0, 1)[: counts[b]],
        )


def packed(
    k: torch.Tensor, v: torch.Tensor, qo_indptr: torch.Tensor, kv_indptr: torch.Tensor
) -> Iterator[Tokens]:
    """Yield the sequences of packed rows [rows, kv heads, dim]: b owns those from kv_indptr[b]."""
    query_bounds, key_bounds = _to_host(qo_indptr, kv_indptr)
    for b in range(kv_indptr.shape[0] - 1):
        rows = slice(key_bounds[b], key_bounds[b + 1])
        yield Tokens(slice(query_bounds[b], query_bounds[b + 1]), k[rows], v[rows])


def _to_host(*tables: torch.Tensor) -> list[list[int]]:
    entries = iter(torch.cat(tables).tolist())
    return [[next(entries) for _ in range(table.shape[0])] for table in tables]
