"""Causal packed prefill with 192-wide keys and 128-wide values, each sequence behind a prefix."""

from dataclasses import dataclass
from typing import Any

import torch

from problems.attention.mla import attend, hide_future, spans, visible_pairs
from problems.sequences import offsets, pattern

SOURCE = (
    "FlashInfer-Trace/Bench, definition mla_ragged_prefill_causal_h16_qk192_vo128, record"
    " 79a808fd-78a2-4cd9-a236-d8c3b018e1e4; Apache-2.0. DeepSeek-V3, uncompressed path, one of 8"
    " tensor-parallel ranks."
)

# 128^-0.5, although keys are 192 wide.
SM_SCALE = 0.08838834764831843
PREFIX = 256
# fmt: off
QUERY_LENGTHS = (
    39, 38, 39, 39, 39, 40, 40, 40, 41, 40, 40, 42, 42, 41, 42, 42, 43, 42, 43, 42, 43, 43, 44, 44,
    44, 46, 45, 44, 45, 45, 46, 46, 46, 46, 46, 47, 47, 47, 47, 48, 49, 48, 47, 48, 49, 50, 49, 49,
    50, 50, 51, 51, 50, 51, 51, 52, 50, 52, 53, 53, 54, 53, 52,
)
# fmt: on


@dataclass(frozen=True)
class Sizes:
    """One workload: offsets of the queries and of the keys, heads, key and value widths."""

    qo_indptr: tuple[int, ...]
    kv_indptr: tuple[int, ...]
    n_heads: int = 16
    qk_dim: int = 192
    vo_dim: int = 128


def _behind(lengths: tuple[int, ...], prefixes: tuple[int, ...]) -> Sizes:
    keys = [n + prefix for n, prefix in zip(lengths, prefixes, strict=True)]
    return Sizes(offsets(lengths), offsets(keys))


def _behind_one(lengths: tuple[int, ...]) -> Sizes:
    return _behind(lengths, (PREFIX,) * len(lengths))


_NARROW = pattern(10, step=37, start=0, modulus=150)

WORKLOADS: dict[str, Sizes] = {
    "full": _behind_one(QUERY_LENGTHS),
    "smoke": Sizes(offsets((9, 8, 11)), offsets((25, 24, 27)), n_heads=4, qk_dim=24, vo_dim=16),
    "heldout_1": _behind((1, 64, 65, 700), (0, 256, 1_000, 3)),
    "heldout_2": _behind_one(pattern(150, step=7, start=0, modulus=60)),
    "heldout_3": Sizes(
        offsets(_NARROW),
        offsets([n + 128 for n in _NARROW]),
        n_heads=8,
        qk_dim=96,
        vo_dim=64,
    ),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw q, k, v, both indptrs and sm_scale; the seed is the caller's."""
    sizes = WORKLOADS[workload]
    n_queries, n_keys = sizes.qo_indptr[-1], sizes.kv_indptr[-1]
    q, k, v = (
        torch.randn((rows, sizes.n_heads, dim), dtype=torch.bfloat16, device=device)
        for rows, dim in (
            (n_queries, sizes.qk_dim),
            (n_keys, sizes.qk_dim),
            (n_keys, sizes.vo_dim),
        )
    )
    qo_indptr, kv_indptr = (
        torch.tensor(indptr, dtype=torch.int32, device=device)
        for indptr in (sizes.qo_indptr, sizes.kv_indptr)
    )
    return [q, k, v, qo_indptr, kv_indptr, SM_SCALE]


@torch.no_grad()
def reference(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    qo_indptr: torch.Tensor,
    kv_indptr: torch.Tensor,
    sm_scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (output, lse): causal attention of each sequence's queries over its own keys.

    Of a sequence with n queries and m keys, query i sees keys 0 to i + m - n.

    Args:
        q: [queries, heads, key dim], bfloat16; float64 when the anchor is computed.
        k: [keys, heads, key dim], the dtype of q.
        v: [keys, heads, value dim], likewise.
        qo_indptr: [sequences + 1], int32: where each sequence's queries start; then the total.
        kv_indptr: [sequences + 1], int32: likewise for its keys.
        sm_scale: factor of the logits, applied after the dot product.

    Returns:
        output: [queries, heads, value dim] in the dtype of q.
        lse: [queries, heads], base-2 logarithm of the softmax denominator in float32 (float64
            in the anchor).
    """
    wide = torch.promote_types(q.dtype, torch.float32)
    output = q.new_zeros(*q.shape[:2], v.shape[-1])
    lse = torch.full(q.shape[:2], -torch.inf, dtype=wide, device=q.device)
    for rows, slots in zip(spans(qo_indptr), spans(kv_indptr), strict=True):
        queries = q[rows].to(wide).transpose(0, 1)
        keys = k[slots].to(wide).permute(1, 2, 0)
        logits = hide_future(queries @ keys * sm_scale)
        found, in_bits = attend(logits, v[slots].to(wide).transpose(0, 1))
        output[rows] = found.transpose(0, 1).to(q.dtype)
        lse[rows] = in_bits.t()
    return output, lse


def bytes_moved() -> int:
    """Return the bytes of the full workload: q, k, v, both indptrs and both outputs once."""
    sizes = WORKLOADS["full"]
    width = sizes.qk_dim + sizes.vo_dim
    rows = (sizes.qo_indptr[-1] + sizes.kv_indptr[-1]) * sizes.n_heads
    lse = 4 * sizes.qo_indptr[-1] * sizes.n_heads
    return 2 * rows * width + lse + 4 * (len(sizes.qo_indptr) + len(sizes.kv_indptr))


def flops() -> int:
    """Return the floating-point operations of both products on the visible pairs."""
    sizes = WORKLOADS["full"]
    n_pairs = visible_pairs(sizes.qo_indptr, sizes.kv_indptr)
    return 2 * n_pairs * sizes.n_heads * (sizes.qk_dim + sizes.vo_dim)
