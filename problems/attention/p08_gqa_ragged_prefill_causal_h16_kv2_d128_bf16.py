"""Causal grouped-query prefill of packed sequences of any length behind short prefixes."""

from dataclasses import replace
from typing import Any

import torch

from problems.attention import batches, causal
from problems.attention.batches import Batch, behind_prefixes, with_lengths
from problems.sequences import pattern

SOURCE = (
    "FlashInfer-Trace/Bench, definition gqa_ragged_prefill_causal_h16_kv2_d128, record"
    " 560c22ab-7115-40f8-b2d8-63b98563e53f; Apache-2.0. Qwen3 32B, one of 4"
    " tensor-parallel ranks; query lengths are captured, prefix lengths the benchmark's own."
)

# fmt: off
QUERY_LENGTHS = (
    133, 181, 9, 8, 14, 43, 24, 29, 2383, 2678, 314, 14, 420, 134, 4, 15, 43, 2024, 23, 1618, 1086,
    300, 49, 7, 340, 422, 1, 68, 18, 7, 74, 3, 20, 21, 12, 31, 3, 7, 21, 40, 14, 107, 11, 6, 30, 9,
    26, 24, 301, 266, 247, 75, 49, 23, 9, 4, 441, 15, 349, 27, 14, 17, 54, 6, 13, 8, 147, 8, 7, 9,
    730,
)
PREFIX_LENGTHS = (
    0, 64, 17, 39, 5, 58, 26, 44, 11, 0, 33, 61, 8, 22, 49, 0, 14, 55, 30, 3, 41, 64, 19, 7, 36, 0,
    52, 24, 60, 13, 28, 46, 1, 0, 57, 20, 35, 9, 63, 42, 16, 0, 50, 27, 4, 38, 59, 23, 12, 45, 0,
    31, 54, 18, 6, 40, 62, 29, 15, 48, 0, 34, 21, 51, 10, 56, 2, 43, 25, 37, 0,
)
# fmt: on

FULL = behind_prefixes(
    Batch(kv_indptr=(0,), n_query_heads=16, n_kv_heads=2), QUERY_LENGTHS, PREFIX_LENGTHS
)

WORKLOADS: dict[str, Batch] = {
    "full": FULL,
    "smoke": replace(with_lengths(FULL, (21, 18, 46, 55), queries=(21, 1, 7, 50)), head_dim=32),
    "heldout_1": behind_prefixes(
        FULL, (0, 1, 16, 127, 128, 129, 4_000), (40, 0, 1_000, 1, 0, 64, 333)
    ),
    "heldout_2": behind_prefixes(
        FULL,
        pattern(300, step=11, start=0, modulus=30),
        pattern(300, step=5, start=0, modulus=64),
    ),
    "heldout_3": replace(
        behind_prefixes(FULL, pattern(12, step=211, start=3, modulus=700)),
        n_query_heads=10,
        n_kv_heads=5,
        head_dim=64,
        sm_scale=0.125,
    ),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw q, k, v, qo_indptr, kv_indptr and sm_scale.

    The seed is the caller's.
    """
    return batches.draw(WORKLOADS[workload], device)


@torch.no_grad()
def reference(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    qo_indptr: torch.Tensor,
    kv_indptr: torch.Tensor,
    sm_scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (output, lse): causal softmax attention inside each sequence.

    Query i of n sees key j of m if j <= i + m - n: the last query sees all.

    Args:
        q: [queries, query heads, dim], bfloat16; float64 when the anchor is computed.
        k: [keys, kv heads, dim], the dtype of q; query head h reads kv head h // G.
        v: as k.
        qo_indptr: [sequences + 1], int32: where each sequence's queries begin and end.
        kv_indptr: [sequences + 1], int32: likewise its keys.
        sm_scale: factor of the logits, applied after the dot product and before the mask.

    Returns:
        output: [queries, query heads, dim] in the dtype of q.
        lse: [queries, query heads], base-2 logarithm of the softmax denominator in float32
            (float64 in the anchor).
    """
    return causal.attend(q, causal.packed(k, v, qo_indptr, kv_indptr), sm_scale)


def bytes_moved() -> int:
    """Return the bytes of the full workload: q, k, v, offsets and outputs once."""
    return batches.bytes_moved(WORKLOADS["full"])


def flops() -> int:
    """Return the operations of both products on the visible pairs of the full workload."""
    return batches.flops(WORKLOADS["full"])
