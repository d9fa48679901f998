"""Grouped-query decode, five query heads on one KV head, over skewed contexts in a paged cache."""

from dataclasses import replace
from typing import Any

import torch

from problems.attention import batches, flat_decode
from problems.attention.batches import Batch, with_lengths
from problems.sequences import pattern

SOURCE = (
    "FlashInfer-Trace/Bench, definition gqa_paged_decode_h5_kv1_d128_ps1, record"
    " 69ec7197-791c-419a-ae93-a3d2f0d49fd0; Apache-2.0. Llama 4 Scout, one of 8 tensor-parallel"
    " ranks; page placement is redrawn."
)

# fmt: off
KV_INDPTR = (
    0, 20, 28, 98, 102, 124, 147, 160, 193, 198, 207, 230, 266, 282, 397, 410, 418, 450, 461, 486,
    508, 814, 1084, 1335, 1412, 1462, 1485, 1496, 1502, 1938, 1955, 2275, 2297, 2313, 2332, 2382,
    2390, 2405, 2414, 2568, 2578, 2586, 2597, 4650, 4660, 4760, 4781, 4932, 4940, 4968, 5043, 5054,
    5070, 5124, 10265, 15933, 15946, 16069, 16081, 17894, 19017, 19040, 19118, 19134,
)
# fmt: on

FULL = Batch(kv_indptr=KV_INDPTR, n_pages=53_173, n_query_heads=5, n_kv_heads=1)

WORKLOADS: dict[str, Batch] = {
    "full": FULL,
    "smoke": replace(with_lengths(FULL, (5, 1, 17, 9, 40, 3)), n_pages=96, head_dim=32),
    "heldout_1": with_lengths(FULL, (12_001, 1, 2, 3, 4, 5, 6, 7)),
    "heldout_2": with_lengths(FULL, pattern(300, step=61, start=0, modulus=97)),
    "heldout_3": replace(
        with_lengths(FULL, pattern(40, step=129, start=3, modulus=900)), n_query_heads=7
    ),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw q, k_cache, v_cache, kv_indptr, kv_indices and sm_scale.

    The seed is the caller's.
    """
    return batches.draw(WORKLOADS[workload], device)


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
    return flat_decode.attend(q, k_cache, v_cache, kv_indptr, kv_indices, sm_scale)


def bytes_moved() -> int:
    """Return the bytes of the full workload: referenced cache rows, q, tables and outputs once."""
    return batches.bytes_moved(WORKLOADS["full"])


def flops() -> int:
    """Return the operations of both products of the full workload."""
    return batches.flops(WORKLOADS["full"])
