"""Causal prefill behind short cached prefixes, five query heads on one KV head, uneven lengths."""

from dataclasses import replace
from typing import Any

import torch

from problems.attention import batches, causal
from problems.attention.batches import Batch, behind_prefixes, with_lengths
from problems.sequences import pattern

SOURCE = (
    "FlashInfer-Trace/Bench, definition gqa_paged_prefill_causal_h5_kv1_d128_ps1, record"
    " b84bca7b-dd0f-4315-a523-b106191c049e; Apache-2.0. Llama 4 Scout, one of 8"
    " tensor-parallel ranks; page placement is redrawn."
)

# fmt: off
QO_INDPTR = (
    0, 5, 73, 74, 94, 113, 124, 153, 156, 162, 182, 216, 229, 338, 347, 353, 380, 389, 412, 432,
    735, 1002, 1250, 1325, 1373, 1394, 1402, 1406, 1840, 1855, 2171, 2191, 2205, 2222, 2270, 2274,
    2286, 2292, 2441, 2448, 2454, 2462, 3211, 5262, 5269, 5364, 5383, 5531, 5537, 5563, 5636, 5645,
    5656, 5708, 10847,
)
KV_INDPTR = (
    0, 7, 76, 79, 100, 122, 134, 166, 170, 178, 200, 235, 250, 364, 376, 383, 414, 424, 448, 469,
    774, 1043, 1293, 1369, 1418, 1440, 1450, 1455, 1890, 1906, 2225, 2246, 2261, 2279, 2328, 2335,
    2349, 2357, 2510, 2519, 2526, 2536, 3289, 5341, 5350, 5449, 5469, 5619, 5626, 5653, 5727, 5737,
    5752, 5805, 10945,
)
# fmt: on

FULL = Batch(
    kv_indptr=KV_INDPTR, qo_indptr=QO_INDPTR, n_pages=44_264, n_query_heads=5, n_kv_heads=1
)

WORKLOADS: dict[str, Batch] = {
    "full": FULL,
    "smoke": replace(
        with_lengths(FULL, (3, 8, 31, 16), queries=(1, 5, 30, 12)), n_pages=72, head_dim=32
    ),
    "heldout_1": behind_prefixes(
        FULL,
        (1, 1, 2, 3, 8, 15, 16, 17, 700, 3_000, 0, 64),
        (0, 900, 5_000, 1, 0, 7, 64, 65, 2_048, 3, 40, 0),
    ),
    "heldout_2": behind_prefixes(
        FULL,
        pattern(100, step=13, start=0, modulus=40),
        pattern(100, step=7, start=0, modulus=30),
    ),
    "heldout_3": replace(
        behind_prefixes(
            FULL,
            pattern(8, step=173, start=5, modulus=600),
            pattern(8, step=11, start=0, modulus=70),
        ),
        n_query_heads=10,
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
