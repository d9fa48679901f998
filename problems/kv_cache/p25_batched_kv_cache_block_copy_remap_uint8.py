"""Copy whole pages of a K and a V cache from source to destination pools under one page mapping."""

from dataclasses import dataclass
from typing import Any

import torch

from problems.tolerance import Exact, Tolerance

SOURCE = (
    "vLLM tests, tests/kernels/attention/test_cache.py, swap-blocks case, at"
    " vllm-project/vllm@b9b6306e; Apache-2.0."
)

TOLERANCE = Tolerance((Exact(), Exact()))
MUTATES = (2, 3)


@dataclass(frozen=True)
class Sizes:
    """One workload: pages per pool, pages copied, and a page's tokens, heads and dims."""

    n_pages: int
    n_mappings: int
    page: tuple[int, int, int] = (32, 8, 256)


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(n_pages=1_024, n_mappings=256),
    "smoke": Sizes(n_pages=16, n_mappings=5, page=(4, 2, 8)),
    "heldout_1": Sizes(n_pages=100, n_mappings=1),
    "heldout_2": Sizes(n_pages=1_024, n_mappings=512),
    "heldout_3": Sizes(n_pages=3_000, n_mappings=1_400, page=(16, 4, 128)),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw src_k, src_v, dst_k, dst_v and block_mapping; the seed is the caller's.

    All page ids in the mapping are distinct, so no source is also a destination.
    """
    sizes = WORKLOADS[workload]
    shape = (sizes.n_pages, *sizes.page)
    pools = [torch.randint(0, 256, shape, dtype=torch.uint8, device=device) for _ in range(4)]
    pages = torch.randperm(sizes.n_pages, device=device)[: 2 * sizes.n_mappings]
    return [*pools, pages.view(2, -1).t().contiguous()]


@torch.no_grad()
def reference(
    src_k: torch.Tensor,
    src_v: torch.Tensor,
    dst_k: torch.Tensor,
    dst_v: torch.Tensor,
    block_mapping: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Copy in place and return (dst_k, dst_v), the very tensors that came in.

    Args:
        src_k: [pages, tokens, heads, dim], uint8.
        src_v: as src_k.
        dst_k: as src_k; pages that the mapping does not name keep every byte.
        dst_v: as dst_k.
        block_mapping: [mappings, 2], int64: source page, destination page.
    """
    source, destination = block_mapping.unbind(1)
    dst_k[destination] = src_k[source]
    dst_v[destination] = src_v[source]
    return dst_k, dst_v


def bytes_moved() -> int:
    """Return the bytes of the full workload: copied pages read and written, and the mapping."""
    sizes = WORKLOADS["full"]
    tokens, heads, dim = sizes.page
    return sizes.n_mappings * (2 * 2 * tokens * heads * dim + 2 * 8)


def flops() -> int:
    """Return 0: nothing is computed."""
    return 0
