"""Causal latent-attention prefill behind short cached prefixes, over a paged cache."""

from dataclasses import dataclass
from typing import Any

import torch

from problems.attention.mla import (
    SPARE_PAGES,
    draw_latent,
    draw_tables,
    paged_attention,
    spans,
    visible_pairs,
)
from problems.sequences import offsets, pattern

SOURCE = (
    "FlashInfer-Trace/Bench, definition mla_paged_prefill_causal_h16_ckv512_kpe64_ps1, record"
    " 892d1b8f-f6fe-40ad-aa3f-b6d391753bd3; Apache-2.0. DeepSeek-V3, one of 8 tensor-parallel"
    " ranks; page placement is redrawn."
)

# The float32 rounding of 192^-0.5 * (0.1 ln 40 + 1)^2.
SM_SCALE = 0.1352337747812271
# fmt: off
QO_INDPTR = (
    0, 20, 31, 114, 128, 164, 173, 190, 327, 423, 456, 460, 499, 520, 602, 603, 613, 1033, 1061,
    1081, 1142, 1532, 1581, 1757, 1823, 1832, 1864, 1943, 1954,
)
KV_INDPTR = (
    0, 23, 38, 123, 141, 180, 191, 212, 353, 452, 488, 494, 538, 561, 651, 655, 669, 1092, 1122,
    1145, 1209, 1602, 1655, 1835, 1905, 1917, 1951, 2032, 2044,
)
# fmt: on


@dataclass(frozen=True)
class Sizes:
    """One workload. Sequence b owns rows and slots from its offsets up to the next ones."""

    qo_indptr: tuple[int, ...]
    kv_indptr: tuple[int, ...]
    n_pages: int
    n_heads: int = 16
    ckv_dim: int = 512
    kpe_dim: int = 64


def _held_out(lengths: tuple[int, ...], prefixes: tuple[int, ...], n_heads: int = 16) -> Sizes:
    kv_indptr = offsets([n + prefix for n, prefix in zip(lengths, prefixes, strict=True)])
    n_pages = kv_indptr[-1] + SPARE_PAGES
    return Sizes(offsets(lengths), kv_indptr, n_pages=n_pages, n_heads=n_heads)


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(QO_INDPTR, KV_INDPTR, n_pages=989_669),
    "smoke": Sizes(
        offsets((5, 1, 20, 9)),
        offsets((7, 4, 23, 12)),
        n_pages=64,
        n_heads=4,
        ckv_dim=64,
        kpe_dim=8,
    ),
    "heldout_1": _held_out((1, 2, 15, 16, 17, 1_000), (4_000, 0, 1, 64, 500, 0)),
    "heldout_2": _held_out(
        pattern(120, step=3, start=0, modulus=12), pattern(120, step=11, start=0, modulus=200)
    ),
    "heldout_3": _held_out((33, 200), (5, 1_000), n_heads=32),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw q_nope, q_pe, both caches, both indptrs, kv_indices and sm_scale; the caller seeds.

    Page ids of a draw are distinct, unordered and differ from draw to draw.
    """
    sizes = WORKLOADS[workload]
    latent = draw_latent(
        (sizes.qo_indptr[-1], sizes.n_heads),
        (sizes.n_pages, 1),
        dims=(sizes.ckv_dim, sizes.kpe_dim),
        device=device,
    )
    tables = draw_tables(
        sizes.qo_indptr,
        sizes.kv_indptr,
        n_pages=sizes.n_pages,
        n_tokens=sizes.kv_indptr[-1],
        device=device,
    )
    return [*latent, *tables, SM_SCALE]


@torch.no_grad()
def reference(  # noqa: PLR0913, PLR0917
    q_nope: torch.Tensor,
    q_pe: torch.Tensor,
    ckv_cache: torch.Tensor,
    kpe_cache: torch.Tensor,
    qo_indptr: torch.Tensor,
    kv_indptr: torch.Tensor,
    kv_indices: torch.Tensor,
    sm_scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (output, lse): causal attention of each sequence's queries over its own latents.

    A logit is (q_nope . latent + q_pe . rotary key) * sm_scale; the latent is also the value. Of
    a sequence with n queries and m keys, query i sees keys 0 to i + m - n.

    Args:
        q_nope: [queries, heads, latent dim], bfloat16; float64 when the anchor is computed.
        q_pe: [queries, heads, rotary dim], the dtype of q_nope.
        ckv_cache: [pages, 1, latent dim], likewise; shared by all heads.
        kpe_cache: [pages, 1, rotary dim], likewise.
        qo_indptr: [sequences + 1], int32.
        kv_indptr: [sequences + 1], int32.
        kv_indices: [tokens], int32: the page of each slot, in token order.
        sm_scale: factor of the logits.

    Returns:
        output: [queries, heads, latent dim] in the dtype of q_nope.
        lse: [queries, heads], base-2 logarithm of the softmax denominator in float32 (float64
            in the anchor).
    """
    return paged_attention(
        (q_nope, q_pe),
        (ckv_cache, kpe_cache),
        query_rows=spans(qo_indptr),
        pages=[kv_indices[slots] for slots in spans(kv_indptr)],
        sm_scale=sm_scale,
    )


def bytes_moved() -> int:
    """Return the bytes of the full workload: referenced cache rows, q, tables and outputs once."""
    sizes = WORKLOADS["full"]
    n_queries, n_tokens = sizes.qo_indptr[-1], sizes.kv_indptr[-1]
    cache = 2 * n_tokens * (sizes.ckv_dim + sizes.kpe_dim)
    head = 2 * (2 * sizes.ckv_dim + sizes.kpe_dim) + 4
    tables = 4 * (len(sizes.qo_indptr) + len(sizes.kv_indptr) + n_tokens)
    return cache + n_queries * sizes.n_heads * head + tables


def flops() -> int:
    """Return the floating-point operations of both products on the visible pairs."""
    sizes = WORKLOADS["full"]
    n_pairs = visible_pairs(sizes.qo_indptr, sizes.kv_indptr)
    return 2 * n_pairs * sizes.n_heads * (2 * sizes.ckv_dim + sizes.kpe_dim)
