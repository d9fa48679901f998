"""Slots of a paged cache: slot s is row s mod (block size) of block s // (block size)."""

import torch


def draw(n_slots: int, *, n_tokens: int, max_pads: int, device: str) -> torch.Tensor:
    """Draw [tokens] int64 distinct slots; of the last 1 to max_pads tokens each has -1 instead.

    With max_pads 0 there is no padding.
    """
    slots = torch.randperm(n_slots, device=device)[:n_tokens]
    if max_pads == 0:
        return slots
    n_pads = torch.randint(1, max_pads + 1, (), device=device)
    tokens = torch.arange(n_tokens, device=device)
    return slots.masked_fill(tokens >= n_tokens - n_pads, -1)


def append(cache: torch.Tensor, slots: torch.Tensor, rows: torch.Tensor) -> None:
    """Write rows[t] into slot slots[t] of the cache, in place; tokens of slot -1 write nothing.

    Args:
        cache: [blocks, block size, ...], a view if need be.
        slots: [tokens], int64, of which at least one is not -1.
        rows: [tokens, ...], in the dtype of the cache.
    """
    is_written = slots >= 0
    # Padding repeats a written token, same cell and same values: to leave it out by a mask,
    # the number of written tokens would have to cross to the host.
    tokens = torch.arange(slots.shape[0], device=slots.device)
    source = torch.where(is_written, tokens, is_written.int().argmax())
    target, size = slots[source], cache.shape[1]
    cache[target // size, target % size] = rows[source]
