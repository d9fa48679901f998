"""Apply staged writes to three groups' block tables, then translate positions to cache slots."""

from dataclasses import dataclass
from typing import Any

import torch

from problems.tolerance import Exact, Tolerance

SOURCE = (
    "vLLM tests, tests/v1/worker/test_gpu_block_table.py, fused staged writes, at"
    " vllm-project/vllm@b9b6306e; Apache-2.0."
)

TOLERANCE = Tolerance((Exact(),) * 5)
MUTATES = (0, 1, 2, 3)

# By group: an allocated block is as many blocks of the kernels' size as EXPANSION says.
ALLOCATION_BLOCK_SIZES = (16, 32, 8)
KERNEL_BLOCK_SIZES = (16, 16, 8)
EXPANSION = tuple(a // k for a, k in zip(ALLOCATION_BLOCK_SIZES, KERNEL_BLOCK_SIZES, strict=True))
N_GROUPS = 3
CAPACITY = 4
N_BLOCK_IDS = 2_048
N_POSITIONS = 64
PAD_SLOT = -1


@dataclass(frozen=True)
class Sizes:
    """One workload; a request has at most n_tokens / n_requests of the batch's tokens."""

    n_requests: int
    n_tokens: int
    widths: tuple[int, int, int] = (512, 1_024, 512)
    max_first_blocks: int = 0


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(64, n_tokens=4_096),
    "smoke": Sizes(8, n_tokens=64, widths=(16, 32, 16)),
    "heldout_1": Sizes(7, n_tokens=448),
    "heldout_2": Sizes(200, n_tokens=12_800),
    "heldout_3": Sizes(64, n_tokens=4_096, max_first_blocks=8),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw the eleven inputs of `reference`; the seed is the caller's.

    Every request is written once in each half of the writes. Some requests have no token.
    """
    sizes = WORKLOADS[workload]
    n_requests = sizes.n_requests
    n_writes = 2 * n_requests

    def integers(high: int, *shape: int) -> torch.Tensor:
        return torch.randint(0, high, shape, dtype=torch.int32, device=device)

    def order() -> torch.Tensor:
        return torch.randperm(n_requests, device=device).to(torch.int32)

    tables = [integers(N_BLOCK_IDS, n_requests, width) for width in sizes.widths]
    num_blocks = integers(sizes.max_first_blocks + 1, N_GROUPS, n_requests)
    write_requests = torch.cat((order(), order()))
    overwrite = integers(2, n_writes).bool()
    staged_ids = integers(N_BLOCK_IDS, N_GROUPS, n_writes, CAPACITY)
    staged_counts = integers(CAPACITY + 1, N_GROUPS, n_writes)
    unused = torch.arange(CAPACITY, device=device) >= staged_counts.unsqueeze(-1)
    staged_ids.masked_fill_(unused, -1)
    idx_mapping = order()
    query_start_loc = integers(sizes.n_tokens // n_requests + 1, n_requests + 1)
    query_start_loc[0] = 0
    query_start_loc = query_start_loc.cumsum(dim=0).to(torch.int32)
    positions = integers(N_POSITIONS, sizes.n_tokens).long()
    staged = [write_requests, overwrite, staged_ids, staged_counts]
    return [*tables, num_blocks, *staged, idx_mapping, query_start_loc, positions]


@torch.no_grad()
def reference(  # noqa: PLR0913, PLR0917
    block_table_0: torch.Tensor,
    block_table_1: torch.Tensor,
    block_table_2: torch.Tensor,
    num_blocks: torch.Tensor,
    write_requests: torch.Tensor,
    overwrite: torch.Tensor,
    staged_ids: torch.Tensor,
    staged_counts: torch.Tensor,
    idx_mapping: torch.Tensor,
    query_start_loc: torch.Tensor,
    positions: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the three block tables and num_blocks, changed in place, and slot_mappings.

    Writes apply in their order. Each puts the ids staged for it, every one expanded to e
    consecutive ids from e * id on (e is 1, 2 and 1 by group), into its request's row, behind the
    num_blocks that are there or, overwriting, from the front; cells after them stay as they are.
    Then a token at position p has slot id * k + p mod k, id being cell p // k of its request's
    row, staged or not, and k the group's block size 16, 16 or 8.

    Args:
        block_table_0: [requests, width], int32; widths differ between the groups.
        block_table_1: as block_table_0.
        block_table_2: as block_table_0.
        num_blocks: [3, requests], int32.
        write_requests: [2 * requests], int32: each half names every request once.
        overwrite: [2 * requests], bool.
        staged_ids: [3, 2 * requests, 4], int32.
        staged_counts: [3, 2 * requests], int32: how many of the staged ids count, 0 to 4.
        idx_mapping: [requests], int32: the request of each row of the batch.
        query_start_loc: [requests + 1], int32: the first token of each row of the batch, and
            the end of the last. Tokens after it have slot -1.
        positions: [tokens], int64.

    Returns:
        block_table_0, block_table_1, block_table_2, num_blocks: the very tensors that came in.
        slot_mappings: [3, tokens], int64.
    """
    tables = (block_table_0, block_table_1, block_table_2)
    n_requests = num_blocks.shape[1]
    for half in (slice(None, n_requests), slice(n_requests, None)):
        requests = write_requests[half].long()
        for group, table in enumerate(tables):
            first = num_blocks[group, requests].masked_fill(overwrite[half], 0)
            ids = _expand(staged_ids[group, half], EXPANSION[group])
            count = EXPANSION[group] * staged_counts[group, half]
            _write(table, requests, first, ids, count)
            num_blocks[group, requests] = first + count

    tokens = torch.arange(positions.shape[0], dtype=torch.int32, device=positions.device)
    row = torch.searchsorted(query_start_loc[1:], tokens, right=True)
    requests = idx_mapping[row.clamp(max=n_requests - 1)].long()
    slots = []
    for table, size in zip(tables, KERNEL_BLOCK_SIZES, strict=True):
        ids = table[requests, positions // size].long()
        slots.append(ids * size + positions % size)
    slot_mappings = torch.stack(slots).masked_fill(tokens >= query_start_loc[-1], PAD_SLOT)
    return *tables, num_blocks, slot_mappings


def _expand(ids: torch.Tensor, factor: int) -> torch.Tensor:
    steps = torch.arange(factor, dtype=ids.dtype, device=ids.device)
    return (factor * ids.unsqueeze(-1) + steps).flatten(-2)


def _write(
    table: torch.Tensor,
    requests: torch.Tensor,
    first: torch.Tensor,
    ids: torch.Tensor,
    count: torch.Tensor,
) -> None:
    """Write the first count[i] of ids[i] into row requests[i], from column first[i] on."""
    steps = torch.arange(ids.shape[-1], device=ids.device)
    columns = first.unsqueeze(-1) + steps
    rows = requests.unsqueeze(-1)
    # Cells beyond the count get back what they hold, so that no mask crosses to the host.
    kept = steps >= count.unsqueeze(-1)
    table[rows, columns] = torch.where(kept, table[rows, columns], ids)


def bytes_moved() -> int:
    """Return the most bytes of the full workload: every id staged, every position of the batch.

    Positions are read, with one id a token and group, and slots written; the rest is the staged
    writes, what they put into the tables, and the counts and offsets.
    """
    sizes = WORKLOADS["full"]
    n_writes = 2 * sizes.n_requests
    tokens = sizes.n_tokens * (8 + N_GROUPS * (4 + 8))
    writes = n_writes * (4 + 1 + N_GROUPS * 4 * (CAPACITY + 1) + sum(EXPANSION) * 4 * CAPACITY)
    return tokens + writes + 4 * (2 * N_GROUPS * sizes.n_requests + 2 * sizes.n_requests + 1)


def flops() -> int:
    """Return 0: all of it is integer work."""
    return 0
