"""Long-context grouped-query decode over 64-token pages with partly filled last ones."""

from dataclasses import replace
from typing import Any

import torch

from problems.attention import batches, causal
from problems.attention.batches import Batch, with_lengths
from problems.sequences import pattern

SOURCE = (
    "FlashInfer-Trace/Bench, definition gqa_paged_decode_h32_kv8_d128_ps64, record"
    " 8c88a86f-1843-42eb-9251-8a0ef4b6a1ee; Apache-2.0. Llama 3.1 8B;"
    " page placement is redrawn."
)

# fmt: off
KV_INDPTR = (
    0, 46, 75, 149, 252, 534, 562, 591, 608, 670, 692, 712, 771, 786, 810, 841, 1193, 1275, 3349,
    5940, 6987, 8811, 10637, 11618, 12695, 13716, 13747, 13956, 13981, 14014, 14041, 14083, 14103,
    14131, 14167, 14189, 14613, 14758, 14951, 14972, 14992, 15018, 15073, 15109, 15150, 17537,
    20213, 20539, 20565, 20969, 21115, 21131, 21158, 21213, 23212, 23247, 24874, 25967, 26278,
    26339, 26358, 26710, 27130, 27143, 27222,
)
# fmt: on

FULL = Batch(
    kv_indptr=KV_INDPTR,
    n_pages=29_441,
    page_size=64,
    kv_last_page_len=(1,) * 64,
    n_query_heads=32,
    n_kv_heads=8,
)
SMALL = replace(
    with_lengths(FULL, (1, 3, 6, 2, 9), last_page_len=(1,) * 5),
    n_pages=32,
    page_size=8,
    n_query_heads=8,
    n_kv_heads=2,
    head_dim=32,
)

WORKLOADS: dict[str, Batch] = {
    "full": FULL,
    "smoke": SMALL,
    "smoke_2": replace(SMALL, kv_last_page_len=(1, 8, 3, 5, 2)),
    "heldout_1": with_lengths(
        FULL,
        (1, 1, 2, 3, 17, 64, 257, 1_024, 4_099),
        last_page_len=(1, 64, 64, 33, 63, 2, 64, 17, 1),
    ),
    "heldout_2": with_lengths(
        FULL,
        pattern(96, step=53, start=0, modulus=200),
        last_page_len=pattern(96, step=29, start=0, modulus=64),
    ),
    "heldout_3": replace(
        with_lengths(
            FULL,
            pattern(24, step=31, start=0, modulus=120),
            last_page_len=pattern(24, step=5, start=0, modulus=16),
        ),
        page_size=16,
        n_query_heads=16,
        n_kv_heads=4,
        head_dim=64,
        sm_scale=0.125,
    ),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw q, k_cache, v_cache, kv_indptr, kv_indices, kv_last_page_len and sm_scale.

    The seed is the caller's.
    """
    return batches.draw(WORKLOADS[workload], device)


@torch.no_grad()
def reference(  # noqa: PLR0913, PLR0917
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    kv_indptr: torch.Tensor,
    kv_indices: torch.Tensor,
    kv_last_page_len: torch.Tensor,
    sm_scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (output, lse): softmax attention of each request's one query over its own tokens.

    Request by request: one list of all tokens would not fit beside the float64 caches.

    Args:
        q: [requests, query heads, dim], bfloat16; float64 when the anchor is computed.
        k_cache: [pages, page size, kv heads, dim], the dtype of q; query head h reads kv head
            h // G.
        v_cache: as k_cache.
        kv_indptr: [requests + 1], int32, in pages.
        kv_indices: [referenced pages], int32: the page of each slot, in token order.
        kv_last_page_len: [requests], int32, 1 up to page size: rows of the last page that count.
        sm_scale: factor of the logits, applied after the dot product.

    Returns:
        output: [requests, query heads, dim] in the dtype of q.
        lse: [requests, query heads], base-2 logarithm of the softmax denominator in float32
            (float64 in the anchor).
    """
    requests = causal.paged(
        k_cache, v_cache, kv_indices, kv_indptr, kv_last_page_len=kv_last_page_len
    )
    return causal.attend(q, requests, sm_scale)


def bytes_moved() -> int:
    """Return the bytes of the full workload: referenced cache rows, q, tables and outputs once."""
    return batches.bytes_moved(WORKLOADS["full"])


def flops() -> int:
    """Return the operations of both products of the full workload."""
    return batches.flops(WORKLOADS["full"])
