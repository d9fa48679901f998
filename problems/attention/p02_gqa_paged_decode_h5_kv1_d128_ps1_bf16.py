"""Grouped-query decode, five query heads on one KV head, over skewed contexts in a paged cache."""

import math
from dataclasses import dataclass
from typing import Any

import torch

from problems.sequences import offsets, pattern

SOURCE = (
    "FlashInfer-Trace/Bench, definition gqa_paged_decode_h5_kv1_d128_ps1, record"
    " 69ec7197-791c-419a-ae93-a3d2f0d49fd0; Apache-2.0. Llama 4 Scout, one of 8 tensor-parallel"
    " ranks; page placement is redrawn."
)

SM_SCALE = 0.08838834764831843
# fmt: off
KV_INDPTR = (
    0, 20, 28, 98, 102, 124, 147, 160, 193, 198, 207, 230, 266, 282, 397, 410, 418, 450, 461, 486,
    508, 814, 1084, 1335, 1412, 1462, 1485, 1496, 1502, 1938, 1955, 2275, 2297, 2313, 2332, 2382,
    2390, 2405, 2414, 2568, 2578, 2586, 2597, 4650, 4660, 4760, 4781, 4932, 4940, 4968, 5043, 5054,
    5070, 5124, 10265, 15933, 15946, 16069, 16081, 17894, 19017, 19040, 19118, 19134,
)
# fmt: on
SPARE_PAGES = 1_024


@dataclass(frozen=True)
class Sizes:
    """One workload. Request b owns slots kv_indptr[b] up to kv_indptr[b + 1] of the page table."""

    kv_indptr: tuple[int, ...]
    n_pages: int
    n_query_heads: int = 5
    n_kv_heads: int = 1
    head_dim: int = 128


def _held_out(lengths: tuple[int, ...], n_query_heads: int = 5) -> Sizes:
    indptr = offsets(lengths)
    return Sizes(indptr, n_pages=indptr[-1] + SPARE_PAGES, n_query_heads=n_query_heads)


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(KV_INDPTR, n_pages=53_173),
    "smoke": Sizes(offsets((5, 1, 17, 9, 40, 3)), n_pages=96, head_dim=32),
    "heldout_1": _held_out((12_001, 1, 2, 3, 4, 5, 6, 7)),
    "heldout_2": _held_out(pattern(300, step=61, start=0, modulus=97)),
    "heldout_3": _held_out(pattern(40, step=129, start=3, modulus=900), n_query_heads=7),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw q, k_cache, v_cache, kv_indptr, kv_indices and sm_scale; the seed is the caller's.

    Page ids of a draw are distinct, unordered and differ from draw to draw.
    """
    sizes = WORKLOADS[workload]
    n_requests = len(sizes.kv_indptr) - 1
    queries = (n_requests, sizes.n_query_heads, sizes.head_dim)
    pool = (sizes.n_pages, 1, sizes.n_kv_heads, sizes.head_dim)
    q, k_cache, v_cache = (
        torch.randn(shape, dtype=torch.bfloat16, device=device) for shape in (queries, pool, pool)
    )
    kv_indptr = torch.tensor(sizes.kv_indptr, dtype=torch.int32, device=device)
    kv_indices = torch.randperm(sizes.n_pages, device=device)[: sizes.kv_indptr[-1]]
    return [q, k_cache, v_cache, kv_indptr, kv_indices.to(torch.int32), SM_SCALE]


@torch.no_grad()
def reference(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    kv_indptr: torch.Tensor,
    kv_indices: torch.Tensor,
    sm_scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (output, lse): softmax attention of each request's one query over its own tokens.

    All tokens of all requests are handled as one flat list, so that no length crosses to the host.

    Args:
        q: [requests, query heads, dim], bfloat16; float64 when the anchor is computed.
        k_cache: [pages, 1, kv heads, dim], the dtype of q; query head h reads kv head h // G.
        v_cache: as k_cache.
        kv_indptr: [requests + 1], int32.
        kv_indices: [tokens], int32: the page of each slot, in token order.
        sm_scale: factor of the logits, applied after the dot product.

    Returns:
        output: [requests, query heads, dim] in the dtype of q; zero for a request of no tokens.
        lse: [requests, query heads], base-2 logarithm of the softmax denominator in float32
            (float64 in the anchor); -inf for a request of no tokens.
    """
    wide = torch.promote_types(q.dtype, torch.float32)
    n_requests, n_heads, dim = q.shape
    n_kv_heads = k_cache.shape[2]
    slots = torch.arange(kv_indices.shape[0], dtype=kv_indptr.dtype, device=q.device)
    owner = torch.searchsorted(kv_indptr[1:], slots, right=True)
    pages = kv_indices.long()

    keys = k_cache[pages, 0].to(wide).unsqueeze(-1)
    values = v_cache[pages, 0].to(wide).unsqueeze(-2)
    queries = q.to(wide).view(n_requests, n_kv_heads, -1, dim)[owner]
    logits = (queries @ keys).view(-1, n_heads) * sm_scale

    peak = logits.new_full((n_requests, n_heads), -torch.inf)
    peak.scatter_reduce_(0, owner.unsqueeze(-1).expand_as(logits), logits, reduce="amax")
    weights = torch.exp(logits - peak[owner])
    total = torch.zeros_like(peak).index_add_(0, owner, weights)
    weighted = (weights.view(*queries.shape[:-1], 1) * values).view(-1, n_heads, dim)
    sums = logits.new_zeros(n_requests, n_heads, dim).index_add_(0, owner, weighted)

    output = sums / total.masked_fill(total == 0, 1).unsqueeze(-1)
    lse = (peak + torch.log(total)) / math.log(2)
    return output.to(q.dtype), lse


def bytes_moved() -> int:
    """Return the bytes of the full workload: referenced cache rows, q, tables and outputs once."""
    sizes = WORKLOADS["full"]
    n_requests, n_tokens = len(sizes.kv_indptr) - 1, sizes.kv_indptr[-1]
    cache = 2 * n_tokens * sizes.n_kv_heads * sizes.head_dim * 2
    query_and_output = 2 * n_requests * sizes.n_query_heads * sizes.head_dim * 2
    lse = n_requests * sizes.n_query_heads * 4
    return cache + query_and_output + lse + (n_requests + 1 + n_tokens) * 4


def flops() -> int:
    """Return the floating-point operations of both products in the full workload."""
    sizes = WORKLOADS["full"]
    return 4 * sizes.kv_indptr[-1] * sizes.n_query_heads * sizes.head_dim
