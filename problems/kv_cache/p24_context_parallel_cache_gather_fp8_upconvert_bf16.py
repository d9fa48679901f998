"""Gather packed 656-byte cache entries and expand each to 576 bfloat16 values."""

from dataclasses import dataclass
from typing import Any

import torch

from problems.kv_cache import e4m3, ragged
from problems.tolerance import Exact, Tolerance

SOURCE = (
    "vLLM tests, tests/kernels/test_cp_gather_fp8.py, at vllm-project/vllm@b9b6306e; Apache-2.0."
)

TOLERANCE = Tolerance((Exact(),))

# An entry: 512 codes, four float32 scales of 128 codes each, and 64 bfloat16 values.
N_CODES = 512
N_SCALES = 4
N_ROPE = 64
ENTRY_BYTES = N_CODES + 4 * N_SCALES + 2 * N_ROPE


@dataclass(frozen=True)
class Sizes:
    """One workload: requests, their tokens together, and the cache's blocks."""

    n_requests: int
    n_tokens: int
    n_blocks: int
    block_size: int = 64


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(3, n_tokens=641, n_blocks=16),
    "smoke": Sizes(3, n_tokens=41, n_blocks=8, block_size=8),
    "heldout_1": Sizes(1, n_tokens=1, n_blocks=4),
    "heldout_2": Sizes(17, n_tokens=3_000, n_blocks=80),
    "heldout_3": Sizes(5, n_tokens=500, n_blocks=48, block_size=16),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw cache, block_table and seq_lens; the seed is the caller's.

    No two requests share a block. The table is as wide as the longest request needs, so its
    width changes from draw to draw; shorter rows end in zeros, which are not to be read.
    """
    sizes = WORKLOADS[workload]
    seq_lens = ragged.draw_lengths(sizes.n_requests, n_tokens=sizes.n_tokens, device=device)
    order = torch.randperm(sizes.n_blocks, device=device)
    n_used = (seq_lens.long() + sizes.block_size - 1) // sizes.block_size
    columns = torch.arange(int(n_used.max()), device=device)
    piece = (n_used.cumsum(dim=0) - n_used).unsqueeze(1) + columns
    named = order[piece.clamp(max=sizes.n_blocks - 1)]
    block_table = named.masked_fill(columns >= n_used.unsqueeze(1), 0).to(torch.int32)

    shape = (sizes.n_blocks, sizes.block_size)
    codes = e4m3.encode(torch.randn(*shape, N_CODES, dtype=torch.float32, device=device))
    scales = 2 * torch.rand(*shape, N_SCALES, dtype=torch.float32, device=device) + 0.1
    rope = torch.randn(*shape, N_ROPE, dtype=torch.bfloat16, device=device)
    packed = (codes, scales.view(torch.uint8), rope.view(torch.uint8))
    return [torch.cat(packed, dim=-1), block_table, seq_lens]


@torch.no_grad()
def reference(
    cache: torch.Tensor, block_table: torch.Tensor, seq_lens: torch.Tensor
) -> torch.Tensor:
    """Return [tokens, 576], bfloat16: request by request, in token order.

    The first 512 are each code's value times its group's scale, in float32 and rounded once; the
    last 64 are the entry's own, bit for bit.

    Args:
        cache: [blocks, block size, 656], uint8: 512 codes of float8_e4m3fn, four little-endian
            float32 scales for 128 codes each, 64 bfloat16 values.
        block_table: [requests, width], int32: token p of a request lies in its block
            p // (block size); what follows its last token's block means nothing.
        seq_lens: [requests], int32, each at least 1; their sum is the number of tokens.
    """
    entries = ragged.gather(cache, block_table, seq_lens)
    codes, scales, rope = torch.split_with_sizes(
        entries, (N_CODES, 4 * N_SCALES, 2 * N_ROPE), dim=-1
    )
    groups = torch.unflatten(e4m3.decode(codes), -1, (N_SCALES, -1))
    scaled = groups * scales.contiguous().view(torch.float32).unsqueeze(-1)
    values = scaled.flatten(-2).to(torch.bfloat16)
    return torch.cat((values, rope.contiguous().view(torch.bfloat16)), dim=-1)


def bytes_moved() -> int:
    """Return the bytes of the full workload: entries read, and their values written."""
    return WORKLOADS["full"].n_tokens * (ENTRY_BYTES + 2 * (N_CODES + N_ROPE))


def flops() -> int:
    """Return the operations of the full workload: one multiplication per code."""
    return WORKLOADS["full"].n_tokens * N_CODES
