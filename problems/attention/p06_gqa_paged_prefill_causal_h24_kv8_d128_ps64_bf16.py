"""Causal chunked grouped-query prefill against very long cached prefixes in 64-token pages."""

from dataclasses import replace
from typing import Any

import torch

from problems.attention import batches, causal
from problems.attention.batches import Batch, with_lengths
from problems.sequences import pattern

SOURCE = (
    "FlashInfer-Trace/Bench, definition gqa_paged_prefill_causal_h24_kv8_d128_ps64, record"
    " 022ad0c2-152e-4feb-abb2-c141f0e7eb52; Apache-2.0. Llama 3.2 3B; page"
    " placement is redrawn."
)

# fmt: off
INDPTR = (
    0, 206, 373, 612, 836, 1112, 1442, 1938, 2411, 2963, 3408, 3939, 4463, 4999, 5601, 6069,
)
# fmt: on

# Of queries in tokens and of keys in pages: a sequence of n queries has 64 (n - 1) + 1 keys.
FULL = Batch(
    kv_indptr=INDPTR,
    qo_indptr=INDPTR,
    n_pages=32_757,
    page_size=64,
    kv_last_page_len=(1,) * 15,
    n_query_heads=24,
    n_kv_heads=8,
)
HELDOUT_2 = pattern(40, step=17, start=0, modulus=100)

WORKLOADS: dict[str, Batch] = {
    "full": FULL,
    "smoke": replace(
        with_lengths(FULL, (3, 7, 12), queries=(3, 7, 12), last_page_len=(1, 1, 1)),
        n_pages=28,
        page_size=8,
        n_query_heads=6,
        n_kv_heads=2,
        head_dim=32,
    ),
    "heldout_1": with_lengths(
        FULL,
        (200, 1, 1, 2, 400, 700),
        queries=(1, 2, 64, 65, 300, 513),
        last_page_len=(37, 2, 64, 1, 64, 1),
    ),
    "heldout_2": with_lengths(
        FULL,
        HELDOUT_2,
        queries=HELDOUT_2,
        last_page_len=pattern(40, step=23, start=0, modulus=64),
    ),
    "heldout_3": replace(
        with_lengths(FULL, (3, 20, 30), queries=(5, 40, 130), last_page_len=(16, 3, 9)),
        page_size=16,
        n_query_heads=8,
        n_kv_heads=2,
        head_dim=64,
        sm_scale=0.125,
    ),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw q, k_cache, v_cache, qo_indptr, kv_indptr, kv_indices, kv_last_page_len and sm_scale.

    The seed is the caller's.
    """
    return batches.draw(WORKLOADS[workload], device)


@torch.no_grad()
def reference(  # noqa: PLR0913, PLR0917
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    qo_indptr: torch.Tensor,
    kv_indptr: torch.Tensor,
    kv_indices: torch.Tensor,
    kv_last_page_len: torch.Tensor,
    sm_scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (output, lse): causal softmax attention inside each sequence.

    Query i of n sees key j of m if j <= i + m - n: the last query sees all.

    Args:
        q: [queries, query heads, dim], bfloat16; float64 when the anchor is computed.
        k_cache: [pages, page size, kv heads, dim], the dtype of q; query head h reads kv head
            h // G.
        v_cache: as k_cache.
        qo_indptr: [sequences + 1], int32, in queries.
        kv_indptr: [sequences + 1], int32, in pages.
        kv_indices: [referenced pages], int32: the page of each slot, in token order.
        kv_last_page_len: [sequences], int32, 1 up to page size: rows of the last page that count.
        sm_scale: factor of the logits, applied after the dot product and before the mask.

    Returns:
        output: [queries, query heads, dim] in the dtype of q.
        lse: [queries, query heads], base-2 logarithm of the softmax denominator in float32
            (float64 in the anchor).
    """
    sequences = causal.paged(
        k_cache,
        v_cache,
        kv_indices,
        kv_indptr,
        qo_indptr=qo_indptr,
        kv_last_page_len=kv_last_page_len,
    )
    return causal.attend(q, sequences, sm_scale)


def bytes_moved() -> int:
    """Return the bytes of the full workload: referenced cache rows, q, tables and outputs once."""
    return batches.bytes_moved(WORKLOADS["full"])


def flops() -> int:
    """Return the operations of both products on the visible pairs of the full workload."""
    return batches.flops(WORKLOADS["full"])
