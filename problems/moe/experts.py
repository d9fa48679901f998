"""Which tokens each expert serves, and the weighted sum of what the experts make of them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Share:
    """The tokens of one expert, ascending, and which of its choices each token gave; int64 [n]."""

    expert: int
    tokens: torch.Tensor
    slots: torch.Tensor


def shares(selected: torch.Tensor, n_experts: int) -> Iterator[Share]:
    """Yield the share of every expert that has tokens, by ascending expert.

    Waits for the device once, for all counts together.

    Args:
        selected: [tokens, choices], int64; what lies outside 0 .. n_experts - 1 is passed over.
        n_experts: how many experts there are.
    """
    flat = selected.flatten()
    elsewhere = (flat < 0) | (flat >= n_experts)
    experts, order = flat.masked_fill(elsewhere, n_experts).sort(stable=True)
    counts = torch.zeros(n_experts + 1, dtype=torch.int64, device=flat.device)
    counts.scatter_add_(0, experts, torch.ones_like(experts))
    n_each = counts.tolist()
    tokens = (order // selected.shape[-1]).split_with_sizes(n_each)
    slots = (order % selected.shape[-1]).split_with_sizes(n_each)
    for expert in range(n_experts):
        if n_each[expert]:
            yield Share(expert, tokens[expert], slots[expert])


def weighted_sum(
    tokens: torch.Tensor,
    selected: torch.Tensor,
    weights: torch.Tensor,
    *,
    n_experts: int,
    expert: Callable[[int, torch.Tensor], torch.Tensor],
) -> torch.Tensor:
    """Return the sum of each token's experts times their weights; in the dtype of tokens.

    Expert after expert adds its products to zeros, so that a token's terms come by ascending
    expert, each sum rounded to the dtype.

    Args:
        tokens: [tokens, width], floating.
        selected: [tokens, choices], int64, as for `shares`.
        weights: [tokens, choices], the dtype of tokens.
        n_experts: how many experts there are.
        expert: maps an expert's number and its tokens [n, width] to what it makes of them.
    """
    total = torch.zeros_like(tokens)
    for share in shares(selected, n_experts):
        made = expert(share.expert, tokens[share.tokens])
        factor = weights[share.tokens, share.slots].unsqueeze(-1)
        total.index_add_(0, share.tokens, made * factor)
    return total
