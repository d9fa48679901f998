"""Requests of unequal length whose tokens lie in the blocks that a table names."""

import torch


def draw_lengths(n_requests: int, *, n_tokens: int, device: str) -> torch.Tensor:
    """Draw [requests] int32 lengths of at least 1 that sum to n_tokens: gaps of distinct cuts."""
    cuts = torch.randperm(n_tokens - 1, device=device)[: n_requests - 1].sort().values + 1
    ends = torch.tensor([0, n_tokens], device=device)
    return torch.cat((ends[:1], cuts, ends[1:])).diff().to(torch.int32)


def gather(cache: torch.Tensor, block_table: torch.Tensor, seq_lens: torch.Tensor) -> torch.Tensor:
    """Return the cache's rows of all tokens, [tokens, ...]: request by request, in token order.

    Args:
        cache: [blocks, block size, ...].
        block_table: [requests, width], int32: block p // (block size) of a request's token p.
        seq_lens: [requests], int32.
    """
    requests = torch.arange(seq_lens.shape[0], device=seq_lens.device)
    # The number of tokens stands in no shape, so here it must cross to the host.
    owner = torch.repeat_interleave(requests, seq_lens)
    starts = seq_lens.cumsum(dim=0) - seq_lens
    position = torch.arange(owner.shape[0], device=seq_lens.device) - starts[owner]
    size = cache.shape[1]
    block = block_table[owner, position // size].long()
    return cache[block, position % size]
