"""Latent-attention decode, one query token per request, over a token-granular paged cache."""

from dataclasses import dataclass
from typing import Any

import torch

from problems.attention.mla import SPARE_PAGES, draw_latent, draw_tables, paged_attention, spans
from problems.sequences import offsets, pattern

SOURCE = (
    "FlashInfer-Trace/Bench, definition mla_paged_decode_h16_ckv512_kpe64_ps1, record"
    " 5bef8d88-0f74-4ccb-a256-b02842951df3; Apache-2.0. DeepSeek-V3, one of 8 tensor-parallel"
    " ranks; page placement is redrawn."
)

# The float32 rounding of 192^-0.5 * (0.1 ln 40 + 1)^2.
SM_SCALE = 0.1352337747812271
# fmt: off
KV_INDPTR = (
    0, 537, 1051, 1689, 2199, 3771, 5311, 6904, 8494, 11155, 13258, 15676, 24873, 25427, 25946,
    27825, 28517, 29331, 30010, 30680, 31220, 31736, 32254, 32866, 33378, 36677, 37310, 37846,
    38896, 39415, 39983, 40641, 41155, 41689, 42417, 43059, 43975, 45419, 47001, 48634, 50171,
    51682, 52311, 53407, 54908, 56394, 57906, 58425, 58975, 59915, 60483, 61003, 64016, 64571,
    65094, 66520, 67099, 67743, 68267, 68784, 69317, 70745, 72061, 73455, 75145,
)
# fmt: on


@dataclass(frozen=True)
class Sizes:
    """One workload. Request b owns slots kv_indptr[b] up to kv_indptr[b + 1] of the page table."""

    kv_indptr: tuple[int, ...]
    n_pages: int
    n_heads: int = 16
    ckv_dim: int = 512
    kpe_dim: int = 64


def _held_out(lengths: tuple[int, ...], n_heads: int = 16) -> Sizes:
    indptr = offsets(lengths)
    return Sizes(indptr, n_pages=indptr[-1] + SPARE_PAGES, n_heads=n_heads)


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(KV_INDPTR, n_pages=989_669),
    "smoke": Sizes(offsets((7, 1, 19, 4, 33)), n_pages=80, n_heads=4, ckv_dim=64, kpe_dim=8),
    "heldout_1": _held_out((0, 1, 2, 63, 64, 65, 511, 513, 2_048, 4_097, 16_001, 30_000)),
    "heldout_2": _held_out(pattern(256, step=37, start=5, modulus=500)),
    "heldout_3": _held_out(pattern(16, step=211, start=0, modulus=2_000), n_heads=128),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw q_nope, q_pe, both caches, kv_indptr, kv_indices and sm_scale; the caller seeds.

    Page ids of a draw are distinct, unordered and differ from draw to draw.
    """
    sizes = WORKLOADS[workload]
    latent = draw_latent(
        (len(sizes.kv_indptr) - 1, sizes.n_heads),
        (sizes.n_pages, 1),
        dims=(sizes.ckv_dim, sizes.kpe_dim),
        device=device,
    )
    n_tokens = sizes.kv_indptr[-1]
    tables = draw_tables(sizes.kv_indptr, n_pages=sizes.n_pages, n_tokens=n_tokens, device=device)
    return [*latent, *tables, SM_SCALE]


@torch.no_grad()
def reference(  # noqa: PLR0913, PLR0917
    q_nope: torch.Tensor,
    q_pe: torch.Tensor,
    ckv_cache: torch.Tensor,
    kpe_cache: torch.Tensor,
    kv_indptr: torch.Tensor,
    kv_indices: torch.Tensor,
    sm_scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (output, lse): attention of each request's one query over its own latents.

    A logit is (q_nope . latent + q_pe . rotary key) * sm_scale; the latent is also the value.

    Args:
        q_nope: [requests, heads, latent dim], bfloat16; float64 when the anchor is computed.
        q_pe: [requests, heads, rotary dim], the dtype of q_nope.
        ckv_cache: [pages, 1, latent dim], likewise; shared by all heads.
        kpe_cache: [pages, 1, rotary dim], likewise.
        kv_indptr: [requests + 1], int32.
        kv_indices: [tokens], int32: the page of each slot, in token order.
        sm_scale: factor of the logits.

    Returns:
        output: [requests, heads, latent dim] in the dtype of q_nope; zero for a request of no
            tokens.
        lse: [requests, heads], base-2 logarithm of the softmax denominator in float32 (float64
            in the anchor); -inf for a request of no tokens.
    """
    return paged_attention(
        (q_nope, q_pe),
        (ckv_cache, kpe_cache),
        query_rows=[slice(request, request + 1) for request in range(q_nope.shape[0])],
        pages=[kv_indices[slots] for slots in spans(kv_indptr)],
        sm_scale=sm_scale,
    )


def bytes_moved() -> int:
    """Return the bytes of the full workload: referenced cache rows, q, tables and outputs once.

    A latent is read once for both of its roles.
    """
    sizes = WORKLOADS["full"]
    n_requests, n_tokens = len(sizes.kv_indptr) - 1, sizes.kv_indptr[-1]
    cache = 2 * n_tokens * (sizes.ckv_dim + sizes.kpe_dim)
    head = 2 * (2 * sizes.ckv_dim + sizes.kpe_dim) + 4
    return cache + n_requests * sizes.n_heads * head + 4 * (n_requests + 1 + n_tokens)


def flops() -> int:
    """Return the floating-point operations of both products in the full workload."""
    sizes = WORKLOADS["full"]
    return 2 * sizes.kv_indptr[-1] * sizes.n_heads * (2 * sizes.ckv_dim + sizes.kpe_dim)
