"""Grouped-query decode, 32 query heads on 8 KV heads, over a token-granular paged cache."""

from dataclasses import replace
from typing import Any

import torch

from problems.attention import batches, flat_decode
from problems.attention.batches import Batch, with_lengths
from problems.sequences import pattern

SOURCE = (
    "FlashInfer-Trace/Bench, definition gqa_paged_decode_h32_kv8_d128_ps1, record"
    " 5444fc56-b282-4228-b233-ee170d1bd127; Apache-2.0. Llama 3.1 8B;"
    " page placement is redrawn."
)

# fmt: off
KV_INDPTR = (
    0, 542, 1067, 1637, 2236, 3014, 3538, 4063, 4576, 5134, 5652, 6168, 6723, 7234, 7754, 8281,
    9129, 9707, 12277, 15364, 16907, 19227, 21549, 23026, 24599, 26116, 26643, 27348, 27869, 28398,
    28921, 29459, 29975, 30499, 31031, 31549, 32469, 33110, 33799, 34316, 34832, 35354, 35905,
    36437, 36974, 39857, 43029, 43851, 44373, 45273, 45915, 46427, 46950, 47501, 49996, 50527,
    52650, 54239, 55046, 55603, 56118, 56966, 57882, 58391, 58966,
)
# fmt: on

FULL = Batch(
    kv_indptr=KV_INDPTR,
    n_pages=68_237,
    n_query_heads=32,
    n_kv_heads=8,
    # 128 ** -0.5 rounded to float32.
    sm_scale=0.0883883461356163,
)
HELDOUT_1 = (
    *(0, 1, 2, 31, 32, 33, 63, 64, 65, 127, 128, 129),
    *(1_000, 1_023, 1_024, 1_025, 4_095, 4_097, 8_191, 8_193),
)
HELDOUT_2 = pattern(256, step=37, start=5, modulus=600)

WORKLOADS: dict[str, Batch] = {
    "full": FULL,
    "smoke": replace(
        with_lengths(FULL, (7, 1, 19, 4, 33)),
        n_pages=80,
        n_query_heads=8,
        n_kv_heads=2,
        head_dim=32,
    ),
    "heldout_1": with_lengths(FULL, HELDOUT_1),
    "heldout_2": replace(with_lengths(FULL, HELDOUT_2), n_pages=2 * sum(HELDOUT_2)),
    "heldout_3": replace(
        with_lengths(FULL, pattern(33, step=211, start=0, modulus=1_500)),
        n_query_heads=28,
        n_kv_heads=4,
        head_dim=64,
        sm_scale=0.125,
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
