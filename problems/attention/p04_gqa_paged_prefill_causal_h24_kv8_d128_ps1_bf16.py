"""Causal grouped-query prefill of whole prompts through a token-granular paged cache."""

from dataclasses import replace
from typing import Any

import torch

from problems.attention import batches, causal
from problems.attention.batches import Batch, behind_prefixes
from problems.sequences import pattern

SOURCE = (
    "FlashInfer-Trace/Bench, definition gqa_paged_prefill_causal_h24_kv8_d128_ps1, record"
    " 0b88caa4-106e-4017-a2a0-fc9840e4b66c; Apache-2.0. Llama 3.2 3B; page"
    " placement is redrawn."
)

# fmt: off
INDPTR = (
    0, 145, 311, 484, 886, 1222, 1568, 1908, 2250, 2695, 3049, 3595, 4042, 4555, 5093, 5638, 6413,
    6974, 7689, 8514, 9110, 10050, 11131, 12281, 13236, 14199, 15449, 16372,
)
# fmt: on

# Of queries and of keys: no sequence has a cached prefix.
FULL = Batch(kv_indptr=INDPTR, qo_indptr=INDPTR, n_pages=77_646, n_query_heads=24, n_kv_heads=8)
SMALL = replace(FULL, n_query_heads=6, n_kv_heads=2, head_dim=32)

WORKLOADS: dict[str, Batch] = {
    "full": FULL,
    "smoke": replace(behind_prefixes(SMALL, (9, 17, 40)), n_pages=80),
    "smoke_2": replace(behind_prefixes(SMALL, (9, 17, 40), (0, 3, 5)), n_pages=80),
    "heldout_1": behind_prefixes(FULL, (1, 127, 128, 129, 2_500, 4_096), (0, 1, 64, 500, 0, 17)),
    "heldout_2": behind_prefixes(FULL, pattern(200, step=37, start=0, modulus=90)),
    "heldout_3": replace(
        behind_prefixes(FULL, pattern(10, step=301, start=7, modulus=900)),
        n_query_heads=16,
        n_kv_heads=2,
        head_dim=64,
        sm_scale=0.125,
    ),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw q, k_cache, v_cache, qo_indptr, kv_indptr, kv_indices and sm_scale.

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
    sm_scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (output, lse): causal softmax attention inside each sequence.

    Query i of n sees key j of m if j <= i + m - n: the last query sees all.

    Args:
        q: [queries, query heads, dim], bfloat16; float64 when the anchor is computed.
        k_cache: [pages, 1, kv heads, dim], the dtype of q; query head h reads kv head h // G.
        v_cache: as k_cache.
        qo_indptr: [sequences + 1], int32: where each sequence's queries begin and end.
        kv_indptr: [sequences + 1], int32: likewise its slots of kv_indices.
        kv_indices: [tokens], int32: the page of each slot, in token order.
        sm_scale: factor of the logits, applied after the dot product and before the mask.

    Returns:
        output: [queries, query heads, dim] in the dtype of q.
        lse: [queries, query heads], base-2 logarithm of the softmax denominator in float32
            (float64 in the anchor).
    """
    sequences = causal.paged(k_cache, v_cache, kv_indices, kv_indptr, qo_indptr=qo_indptr)
    return causal.attend(q, sequences, sm_scale)


def bytes_moved() -> int:
    """Return the bytes of the full workload: referenced cache rows, q, tables and outputs once."""
    return batches.bytes_moved(WORKLOADS["full"])


def flops() -> int:
    """Return the operations of both products on the visible pairs of the full workload."""
    return batches.flops(WORKLOADS["full"])
