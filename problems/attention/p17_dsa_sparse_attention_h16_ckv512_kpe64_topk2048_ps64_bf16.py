"""Latent attention of each token to its own list of up to 2048 cache rows (DeepSeek-V3.2)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from problems.attention.mla import attend, draw_latent, latent_logits
from problems.sequences import pattern

SOURCE = (
    "FlashInfer-Trace/Bench, definition dsa_sparse_attention_h16_ckv512_kpe64_topk2048_ps64, record"
    " 0f8137e0c871466f8b4bdce5bfd57658; Apache-2.0. DeepSeek-V3.2, one of 8 tensor-parallel ranks;"
    " scale, counts and the long selection as captured, page placement is redrawn."
)

# 192^-0.5 * (0.1 ln 40 + 1)^2.
SM_SCALE = 0.1352337788608801
LONG_ROW = 2
# fmt: off
SELECT_LENS = (
    18, 11, 2048, 20, 25, 45, 135, 7, 8, 10, 22, 17, 11, 30, 130, 9, 600, 255, 1033, 1010, 58, 2,
    21, 954, 7, 14, 1015, 28, 64, 5, 18, 33, 26, 86, 5, 14, 10, 90, 53, 22, 2, 17, 154, 51, 121,
    25, 16, 5, 19, 12, 44, 124, 33, 1157, 9, 5, 1319, 300, 23, 35, 389, 8,
)
# fmt: on
# Runs of logical positions, each written start+length.
LONG_RUNS = """
0+53 54+10 65+25 91+11 103+42 146+12 159+65 225+7 233+3 237+40 278+1 280+12 293+13 307+8 316+1
318+5 324+4 329+3 333+3 337+21 359+14 374+1 377+1 379+24 404+110 515+13 529+20 550+6 557+41 599+16
616+14 631+15 647+10 658+6 665+24 691+11 703+15 719+10 730+21 752+21 774+26 801+28 830+7 838+11
850+1 852+12 865+18 884+5 890+1 892+1 894+9 904+11 916+10 927+12 940+4 946+23 970+7 978+6 985+29
1015+5 1021+22 1045+13 1059+37 1097+10 1108+42 1151+1 1153+30 1184+2 1187+31 1219+33 1253+8
1262+102 1366+54 1421+98 1520+19 1540+23 1564+7 1572+31 1604+35 1640+21 1662+4 1668+10 1681+4
1688+15 1706+4 1711+13 1725+3 1729+1 1731+3 1736+12 1749+47 1798+70 1869+108 1978+2 1981+9 1992+6
1999+31 2031+24 2056+105
"""

Positions = tuple[int, ...]


@dataclass(frozen=True)
class Sizes:
    """One workload: the ascending logical positions that each token selects, pool and widths.

    A token's context reaches to its last selected position and fills pages of its own.
    """

    positions: tuple[Positions, ...]
    n_pages: int
    page_size: int = 64
    index_width: int = 2_048
    n_heads: int = 16
    ckv_dim: int = 512
    kpe_dim: int = 64


def _positions(counts: tuple[int, ...], special: dict[int, Positions]) -> tuple[Positions, ...]:
    """Return positions 0 to count - 1 of each row, but for the special rows."""
    return tuple(special.get(row, tuple(range(count))) for row, count in enumerate(counts))


def _from_runs(runs: str) -> Positions:
    return tuple(position for run in runs.split() for position in _run(*run.split("+")))


def _run(start: str, length: str) -> range:
    return range(int(start), int(start) + int(length))


def _spread(context: int) -> Positions:
    return tuple(j * context // 2_048 for j in range(2_048))


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(_positions(SELECT_LENS, {LONG_ROW: _from_runs(LONG_RUNS)}), n_pages=6_465),
    "smoke": Sizes(
        _positions((3, 2, 32, 9, 1, 20), {LONG_ROW: _from_runs("0+5 6+10 17+3 22+14")}),
        n_pages=40,
        page_size=8,
        index_width=32,
        n_heads=4,
        ckv_dim=64,
        kpe_dim=16,
    ),
    "heldout_1": Sizes(
        _positions(
            (2_048, 2_048, 2_048, 1, 2, 64, 65, 511, 2_000),
            {0: _spread(4_096), 1: _spread(2_048), 2: _spread(6_144)},
        ),
        n_pages=300,
    ),
    "heldout_2": Sizes(_positions(pattern(300, step=37, start=0, modulus=200), {}), n_pages=1_400),
    "heldout_3": Sizes(
        _positions(pattern(20, step=211, start=0, modulus=1_024), {}),
        n_pages=400,
        index_width=1_024,
        n_heads=8,
    ),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw q_nope, q_pe, both caches, sparse_indices and sm_scale; the seed is the caller's.

    Tokens never share a page, and which pages they own differs from draw to draw.
    """
    sizes = WORKLOADS[workload]
    n_tokens = len(sizes.positions)
    latent = draw_latent(
        (n_tokens, sizes.n_heads),
        (sizes.n_pages, sizes.page_size),
        dims=(sizes.ckv_dim, sizes.kpe_dim),
        device=device,
    )
    shape = (n_tokens, sizes.index_width)
    sparse_indices = torch.full(shape, -1, dtype=torch.int32, device=device)
    for token, rows in enumerate(_cache_rows(sizes, device)):
        sparse_indices[token, : rows.shape[0]] = rows
    return [*latent, sparse_indices, SM_SCALE]


def _cache_rows(sizes: Sizes, device: str) -> Iterator[torch.Tensor]:
    """Yield each token's selected rows of the flattened pool, ascending."""
    waiting = torch.randperm(sizes.n_pages, device=device)
    for positions in sizes.positions:
        n_owned = positions[-1] // sizes.page_size + 1
        owned, waiting = waiting[:n_owned], waiting[n_owned:]
        logical = torch.tensor(positions, device=device)
        rows = owned[logical // sizes.page_size] * sizes.page_size + logical % sizes.page_size
        yield rows.sort().values


@torch.no_grad()
def reference(
    q_nope: torch.Tensor,
    q_pe: torch.Tensor,
    ckv_cache: torch.Tensor,
    kpe_cache: torch.Tensor,
    sparse_indices: torch.Tensor,
    sm_scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (output, lse): attention of each token over the cache rows it selects.

    A logit is (q_nope . latent + q_pe . rotary key) * sm_scale; the latent is also the value.

    Args:
        q_nope: [tokens, heads, latent dim], bfloat16; float64 when the anchor is computed.
        q_pe: [tokens, heads, rotary dim], the dtype of q_nope.
        ckv_cache: [pages, page size, latent dim], likewise; shared by all heads.
        kpe_cache: [pages, page size, rotary dim], likewise.
        sparse_indices: [tokens, width], int32: rows of the flattened caches, at least one a
            token, distinct and ascending from the left; -1 fills the rest of the line.
        sm_scale: factor of the logits.

    Returns:
        output: [tokens, heads, latent dim] in the dtype of q_nope.
        lse: [tokens, heads], base-2 logarithm of the softmax denominator in float32 (float64 in
            the anchor).
    """
    wide = torch.promote_types(q_nope.dtype, torch.float32)
    unused = sparse_indices < 0
    rows = sparse_indices.long().masked_fill(unused, 0)
    # Zeroed, because a weight of 0 would not silence a NaN of row 0.
    ckv, kpe = (
        cache.flatten(0, 1)[rows].to(wide).masked_fill(unused.unsqueeze(-1), 0)
        for cache in (ckv_cache, kpe_cache)
    )
    logits = latent_logits(q_nope.to(wide), q_pe.to(wide), ckv, kpe, sm_scale)
    output, lse = attend(logits.masked_fill(unused.unsqueeze(1), -torch.inf), ckv)
    return output.to(q_nope.dtype), lse


def bytes_moved() -> int:
    """Return the bytes of the full workload: selected cache rows, q, indices and outputs once."""
    sizes = WORKLOADS["full"]
    n_tokens = len(sizes.positions)
    cache = 2 * _n_selected(sizes) * (sizes.ckv_dim + sizes.kpe_dim)
    head = 2 * (2 * sizes.ckv_dim + sizes.kpe_dim) + 4
    return cache + n_tokens * (sizes.n_heads * head + 4 * sizes.index_width)


def flops() -> int:
    """Return the floating-point operations of both products on the selected rows."""
    sizes = WORKLOADS["full"]
    return 2 * _n_selected(sizes) * sizes.n_heads * (2 * sizes.ckv_dim + sizes.kpe_dim)


def _n_selected(sizes: Sizes) -> int:
    return sum(map(len, sizes.positions))
