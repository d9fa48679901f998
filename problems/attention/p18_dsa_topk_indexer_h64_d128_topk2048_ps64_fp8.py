"""Score FP8 paged keys and select the 2048 best cache rows of each request (DeepSeek-V3.2)."""

from dataclasses import dataclass
from typing import Any

import torch

from problems.tolerance import Exact, Tolerance

SOURCE = (
    "FlashInfer-Trace/Bench, definition dsa_topk_indexer_h64_d128_topk2048_ps64_fp8, record"
    " a52c09bc-2ee5-4366-be02-457932a80631; Apache-2.0. DeepSeek-V3.2 lightning indexer; lengths"
    " and table width as captured, pages and contents are synthesised."
)

TOLERANCE = Tolerance((Exact(),))

TOPK = 2_048
DECISION_MARGIN = 1e-3
REDRAW_LIMIT = 16
SCALE_BYTES = 4
# fmt: off
SEQ_LENS = (
    63, 9, 2693, 212, 11, 25, 6, 50, 77, 22, 25, 10, 52, 76, 11, 30, 1822, 25, 1034, 1811, 7, 13,
    23, 1896, 13, 285, 18, 166, 16, 1421, 12,
)
# fmt: on


@dataclass(frozen=True)
class Sizes:
    """One workload: tokens of each request, pool, pages in a line of the table, index heads.

    `topk` is what the draw's margin is meant for; a test passes it on to `reference`.
    """

    seq_lens: tuple[int, ...]
    n_pages: int
    table_width: int
    page_size: int = 64
    n_heads: int = 64
    dim: int = 128
    topk: int = TOPK


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(SEQ_LENS, n_pages=11_923, table_width=43),
    # One request longer than TOPK, so that the smoke workload selects too.
    "smoke": Sizes(
        (7, 1, 2_100, 32, 16), n_pages=300, table_width=264, page_size=8, n_heads=8, dim=32
    ),
    "smoke_2": Sizes(
        (7, 1, 45, 32, 16),
        n_pages=48,
        table_width=6,
        page_size=8,
        n_heads=8,
        dim=32,
        topk=32,
    ),
    "heldout_1": Sizes((1, 64, 65, 2_047, 2_048, 2_049, 4_096, 5_000), n_pages=400, table_width=79),
    "heldout_2": Sizes((8_192, 2_050, 100, 3_000), n_pages=300, table_width=128),
    "heldout_3": Sizes((2_693, 9, 2_500, 300), n_pages=200, table_width=43, n_heads=32, dim=64),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw q_index_fp8, k_index_cache_fp8, weights, seq_lens and block_table; the caller seeds.

    Pages of a draw are distinct and never page 0. All but the table is drawn again while some
    request's choice hangs on less than DECISION_MARGIN.

    Raises:
        ValueError: some request is still undecided after REDRAW_LIMIT draws.
    """
    sizes = WORKLOADS[workload]
    seq_lens = torch.tensor(sizes.seq_lens, dtype=torch.int32, device=device)
    block_table = _draw_table(sizes, device)
    for _ in range(REDRAW_LIMIT):
        q, cache, weights = _draw_contents(sizes, device)
        scores = _scores(q, cache, weights, block_table, wide=torch.float64)
        if _is_decided(scores, sizes):
            return [q, cache, weights, seq_lens, block_table]
    raise ValueError(
        f"rank {sizes.topk} still exceeds the next by less than {DECISION_MARGIN} after"
        f" {REDRAW_LIMIT} draws; the scores must be tied"
    )


@torch.no_grad()
def reference(
    q_index_fp8: torch.Tensor,
    k_index_cache_fp8: torch.Tensor,
    weights: torch.Tensor,
    seq_lens: torch.Tensor,
    block_table: torch.Tensor,
    *,
    topk: int = TOPK,
) -> tuple[torch.Tensor]:
    """Return (topk_indices,): rows of the flattened pool with each request's best scores.

    The score of a token is the sum over heads of weight * max(0, q . key), in float32.

    Args:
        q_index_fp8: [requests, heads, dim], float8_e4m3fn.
        k_index_cache_fp8: [pages, page size, 1, dim + 4], int8. The bytes of a page are first
            page size * dim values of float8_e4m3fn, token by token, and then one float32 scale
            a token, little-endian; a key is value * scale. The last axis holds no token's bytes.
        weights: [requests, heads], float32; some are negative.
        seq_lens: [requests], int32.
        block_table: [requests, table width], int32: pages in token order; 0 fills a line's rest.
        topk: how many rows to select.

    Returns:
        topk_indices: [requests, topk], int32: page * page size + row in it, by ascending position
            in the request; -1 behind the last where a request has fewer tokens than topk.
    """
    page_size = k_index_cache_fp8.shape[1]
    scores = _scores(q_index_fp8, k_index_cache_fp8, weights, block_table, wide=torch.float32)
    n_positions = scores.shape[1]
    behind = torch.arange(n_positions, device=scores.device) >= seq_lens.unsqueeze(-1)
    n_chosen = min(topk, n_positions)
    best = scores.masked_fill(behind, -torch.inf).topk(n_chosen, dim=-1).indices
    chosen = best.sort(dim=-1).values

    pages = block_table.long().gather(-1, chosen // page_size)
    rows = pages * page_size + chosen % page_size
    # Positions behind the end sort last, so that what is left of them fills the line's rest.
    rows = rows.masked_fill(chosen >= seq_lens.unsqueeze(-1), -1)
    padded = torch.nn.functional.pad(rows, (0, topk - n_chosen), value=-1)
    return (padded.to(torch.int32),)


def _scores(
    q: torch.Tensor,
    cache: torch.Tensor,
    weights: torch.Tensor,
    block_table: torch.Tensor,
    *,
    wide: torch.dtype,
) -> torch.Tensor:
    """Return [requests, table width * page size] scores of all positions, used or not."""
    page_size, dim = cache.shape[1], q.shape[-1]
    n_requests = block_table.shape[0]
    pages = cache.flatten(1)[block_table.long()]
    values, scales = pages.tensor_split((page_size * dim,), dim=-1)
    keys = values.contiguous().view(torch.float8_e4m3fn).to(wide)
    keys = keys.view(n_requests, -1, dim)
    scales = scales.contiguous().view(torch.float32).to(wide).view(n_requests, -1, 1)
    hits = torch.relu(q.to(wide) @ (keys * scales).transpose(-1, -2))
    return (weights.to(wide).unsqueeze(-1) * hits).sum(dim=1)


def _draw_table(sizes: Sizes, device: str) -> torch.Tensor:
    shape = (len(sizes.seq_lens), sizes.table_width)
    table = torch.zeros(shape, dtype=torch.int32, device=device)
    waiting = 1 + torch.randperm(sizes.n_pages - 1, device=device)
    for request, length in enumerate(sizes.seq_lens):
        n_owned = -(-length // sizes.page_size)
        table[request, :n_owned] = waiting[:n_owned]
        waiting = waiting[n_owned:]
    return table


def _draw_contents(sizes: Sizes, device: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, dtype=torch.float32, device=device)

    n_requests, rows = len(sizes.seq_lens), (sizes.n_pages, sizes.page_size)
    q = normal(n_requests, sizes.n_heads, sizes.dim).to(torch.float8_e4m3fn)
    values = normal(*rows, sizes.dim).to(torch.float8_e4m3fn).view(torch.int8).flatten(1)
    scales = 0.5 + 0.5 * torch.rand(rows, dtype=torch.float32, device=device)
    pages = torch.cat((values, scales.view(torch.int8)), dim=1)
    cache = pages.view(*rows, 1, sizes.dim + SCALE_BYTES)
    return q, cache, normal(n_requests, sizes.n_heads)


def _is_decided(scores: torch.Tensor, sizes: Sizes) -> bool:
    """Say whether rank topk exceeds the next by the margin in every request that has both."""
    for request, length in enumerate(sizes.seq_lens):
        if length > sizes.topk:
            best = scores[request, :length].topk(sizes.topk + 1).values
            if float(best[-2] - best[-1]) < DECISION_MARGIN:
                return False
    return True


def bytes_moved() -> int:
    """Return the bytes of the full workload: keys of all requests, the other inputs, the output.

    Requests of up to TOPK tokens need no scores; a kernel that skips them moves less.
    """
    sizes = WORKLOADS["full"]
    keys = sum(sizes.seq_lens) * (sizes.dim + SCALE_BYTES)
    query = sizes.n_heads * (sizes.dim + 4)
    table = 4 + 4 * sizes.table_width
    return keys + len(sizes.seq_lens) * (query + table + 4 * sizes.topk)


def flops() -> int:
    """Return the floating-point operations of the dot products over all requests."""
    sizes = WORKLOADS["full"]
    return 2 * sum(sizes.seq_lens) * sizes.n_heads * sizes.dim
