"""Causal prefill of many short packed sequences with heads 256 wide on one KV head."""

from dataclasses import replace
from typing import Any

import torch

from problems.attention import batches, causal
from problems.attention.batches import Batch, behind_prefixes, with_lengths
from problems.sequences import pattern

SOURCE = (
    "FlashInfer-Trace/Bench, definition gqa_ragged_prefill_causal_h8_kv1_d256, record"
    " 96ee50a6-c16e-4231-9253-e4565ed6213d; Apache-2.0. Qwen3 Next 80B A3B, one of"
    " 2 tensor-parallel ranks; query lengths are captured, prefix lengths the benchmark's own."
)

# fmt: off
QUERY_LENGTHS = (
    35, 71, 76, 69, 62, 52, 61, 39, 102, 94, 64, 44, 63, 37, 49, 56, 53, 58, 47, 18, 61, 83, 49, 63,
    64, 19, 82, 63, 17, 39, 59, 46, 66, 86, 41, 58, 36, 41, 33, 18, 19, 25, 32, 39, 68, 47, 73, 41,
    50, 13, 27, 59, 22, 29, 66, 23, 20, 37, 32, 40, 19, 55, 43,
)
PREFIX_LENGTHS = (
    0, 64, 17, 39, 5, 58, 26, 44, 11, 0, 33, 61, 8, 22, 49, 0, 14, 55, 30, 3, 41, 64, 19, 7, 36, 0,
    52, 24, 60, 13, 28, 46, 1, 0, 57, 20, 35, 9, 63, 42, 16, 0, 50, 27, 4, 38, 59, 23, 12, 45, 0,
    31, 54, 18, 6, 40, 62, 29, 15, 48, 0, 34, 21,
)
# fmt: on

# The scale is that of heads 128 wide.
FULL = behind_prefixes(
    Batch(kv_indptr=(0,), n_query_heads=8, n_kv_heads=1, head_dim=256),
    QUERY_LENGTHS,
    PREFIX_LENGTHS,
)
HELDOUT_1 = behind_prefixes(FULL, (1, 2, 63, 64, 65, 1_500), (5, 0, 64, 0, 1, 250))

WORKLOADS: dict[str, Batch] = {
    "full": FULL,
    "smoke": replace(with_lengths(FULL, (21, 18, 46, 55), queries=(21, 1, 7, 50)), head_dim=64),
    "heldout_1": HELDOUT_1,
    "heldout_2": behind_prefixes(FULL, pattern(400, step=7, start=0, modulus=24)),
    "heldout_3": replace(HELDOUT_1, n_query_heads=4, n_kv_heads=2),
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
