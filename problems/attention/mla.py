"""Attention in the latent space of DeepSeek-V3: draws, logits, and softmax with its base-2 sum.

A token's latent (compressed key and value) and its rotary key are shared by all heads: a head's
logit is q_nope . latent + q_pe . rotary key, and its value is the latent itself.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

import torch

SPARE_PAGES = 1_024


def draw_latent(
    queries: tuple[int, int], pool: tuple[int, int], *, dims: tuple[int, int], device: str
) -> list[torch.Tensor]:
    """Draw q_nope, q_pe, ckv_cache and kpe_cache, standard normal in bfloat16.

    Args:
        queries: rows and heads.
        pool: pages and tokens per page.
        dims: widths of the latent and of the rotary key.
    """
    return [
        torch.randn((*shape, dim), dtype=torch.bfloat16, device=device)
        for shape in (queries, pool)
        for dim in dims
    ]


def draw_tables(
    *indptrs: Sequence[int], n_pages: int, n_tokens: int, device: str
) -> list[torch.Tensor]:
    """Return the offsets as int32, then a drawn page table of distinct, unordered ids."""
    given = [torch.tensor(indptr, dtype=torch.int32, device=device) for indptr in indptrs]
    return [*given, torch.randperm(n_pages, device=device)[:n_tokens].to(torch.int32)]


def spans(indptr: torch.Tensor) -> list[slice]:
    """Return each sequence's rows in a packed list. The one copy of offsets to the host."""
    return [slice(first, end) for first, end in pairwise(indptr.tolist())]


def visible_pairs(qo_indptr: Sequence[int], kv_indptr: Sequence[int]) -> int:
    """Return how many pairs of query and key `hide_future` leaves, over all sequences."""
    lengths = zip(pairwise(qo_indptr), pairwise(kv_indptr), strict=True)
    counts = [(q_end - q_first, k_end - k_first) for (q_first, q_end), (k_first, k_end) in lengths]
    return sum(n * (m - n) + n * (n + 1) // 2 for n, m in counts)


def latent_logits(
    q_nope: torch.Tensor,
    q_pe: torch.Tensor,
    ckv: torch.Tensor,
    kpe: torch.Tensor,
    sm_scale: float,
) -> torch.Tensor:
    """Return [..., rows, tokens]: both dot products, added and then scaled.

    Args:
        q_nope: [..., rows, latent dim].
        q_pe: [..., rows, rotary dim].
        ckv: [..., tokens, latent dim], or [tokens, latent dim] for all.
        kpe: [..., tokens, rotary dim], likewise.
        sm_scale: factor of the sum.
    """
    return (q_nope @ ckv.transpose(-1, -2) + q_pe @ kpe.transpose(-1, -2)) * sm_scale


def hide_future(logits: torch.Tensor) -> torch.Tensor:
    """Set to -inf what lies ahead: of n queries and m keys, query i sees keys up to i + m - n."""
    n_queries, n_keys = logits.shape[-2:]
    ones = torch.ones(n_queries, n_keys, dtype=torch.bool, device=logits.device)
    return logits.masked_fill(ones.triu(n_keys - n_queries + 1), -torch.inf)


def attend(logits: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return softmax(logits) @ values, and the base-2 logarithm of the softmax denominator.

    A row of no keys gives zero and -inf.
    """
    output = torch.softmax(logits, dim=-1) @ values
    return output, torch.logsumexp(logits, dim=-1) / math.log(2)


def paged_attention(
    queries: tuple[torch.Tensor, torch.Tensor],
    caches: tuple[torch.Tensor, torch.Tensor],
    *,
    query_rows: Sequence[slice],
    pages: Sequence[torch.Tensor],
    sm_scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (output, lse) of causal attention, sequence by sequence, over pages of one token.

    Args:
        queries: q_nope [rows, heads, latent dim] and q_pe [rows, heads, rotary dim].
        caches: latents [pages, 1, latent dim] and rotary keys [pages, 1, rotary dim].
        query_rows: each sequence's rows of the queries.
        pages: each sequence's page ids, in token order.
        sm_scale: factor of the logits.

    Returns:
        output: as q_nope.
        lse: [rows, heads] in float32, or float64 if q_nope is.
    """
    q_nope = queries[0]
    wide = torch.promote_types(q_nope.dtype, torch.float32)
    output = torch.zeros_like(q_nope)
    lse = torch.full(q_nope.shape[:2], -torch.inf, dtype=wide, device=q_nope.device)
    for rows, page_ids in zip(query_rows, pages, strict=True):
        nope, pe = (q[rows].to(wide).transpose(0, 1) for q in queries)
        ckv, kpe = (cache[page_ids, 0].to(wide) for cache in caches)
        logits = hide_future(latent_logits(nope, pe, ckv, kpe, sm_scale))
        found, in_bits = attend(logits, ckv)
        output[rows] = found.transpose(0, 1).to(q_nope.dtype)
        lse[rows] = in_bits.t()
    return output, lse
