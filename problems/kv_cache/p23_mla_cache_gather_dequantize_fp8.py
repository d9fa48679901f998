"""Collect ragged sequences from a paged FP8 latent cache into one dense float32 matrix."""

from dataclasses import dataclass
from typing import Any

import torch

from problems.kv_cache import e4m3, ragged
from problems.tolerance import Exact, Tolerance

SOURCE = (
    "vLLM tests, tests/kernels/attention/test_cache.py, gather-and-maybe-dequant MLA case, at"
    " vllm-project/vllm@b9b6306e; Apache-2.0."
)

TOLERANCE = Tolerance((Exact(),))


@dataclass(frozen=True)
class Sizes:
    """One workload: requests, their tokens together, the cache's geometry, and the scale."""

    n_requests: int
    n_tokens: int
    n_blocks: int
    block_size: int = 16
    entry: int = 576
    scale: float = 0.1


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(8, n_tokens=4_096, n_blocks=1_024),
    "smoke": Sizes(3, n_tokens=50, n_blocks=16, block_size=4, entry=24),
    "heldout_1": Sizes(1, n_tokens=5_000, n_blocks=1_024),
    "heldout_2": Sizes(64, n_tokens=2_048, n_blocks=256, block_size=32, scale=0.37),
    "heldout_3": Sizes(12, n_tokens=3_000, n_blocks=512, block_size=64, entry=320),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw src_cache, block_table, seq_lens and scale; the seed is the caller's.

    Values are about normal once scaled. Each request's row of the table names every block, in an
    order of its own, so that requests share blocks.
    """
    sizes = WORKLOADS[workload]
    shape = (sizes.n_blocks, sizes.block_size, sizes.entry)
    values = torch.randn(shape, dtype=torch.float16, device=device) / sizes.scale
    src_cache = e4m3.encode(values.clamp(-e4m3.MAX, e4m3.MAX))
    orders = [torch.randperm(sizes.n_blocks, device=device) for _ in range(sizes.n_requests)]
    block_table = torch.stack(orders).to(torch.int32)
    seq_lens = ragged.draw_lengths(sizes.n_requests, n_tokens=sizes.n_tokens, device=device)
    return [src_cache, block_table, seq_lens, sizes.scale]


@torch.no_grad()
def reference(
    src_cache: torch.Tensor, block_table: torch.Tensor, seq_lens: torch.Tensor, scale: float
) -> torch.Tensor:
    """Return [tokens, entry], float32: request by request, in token order.

    Args:
        src_cache: [blocks, block size, entry], uint8: codes of float8_e4m3fn, none of them NaN.
        block_table: [requests, width], int32: token p of a request lies in its block
            p // (block size); what follows its last token's block means nothing.
        seq_lens: [requests], int32, each at least 1; their sum is the number of tokens.
        scale: factor of every element, applied in float32.
    """
    return e4m3.decode(ragged.gather(src_cache, block_table, seq_lens)) * scale


def bytes_moved() -> int:
    """Return the bytes of the full workload: entries read as bytes and written as float32."""
    sizes = WORKLOADS["full"]
    return (1 + 4) * sizes.n_tokens * sizes.entry


def flops() -> int:
    """Return the operations of the full workload: one multiplication per element."""
    sizes = WORKLOADS["full"]
    return sizes.n_tokens * sizes.entry
