"""Draws that several problems share: scaled weights, and experts of unequal popularity."""

import math

import torch


def weights(*shape: int, fan_in: int, dtype: torch.dtype, device: str) -> torch.Tensor:
    """Return standard normal values drawn in `dtype`, then divided by sqrt(fan_in) in it."""
    # In place: some of these are several gigabytes.
    return torch.randn(shape, dtype=dtype, device=device).div_(math.sqrt(fan_in))


def popular_experts(
    n_tokens: int, n_experts: int, n_chosen: int, *, popularity_std: float, device: str
) -> torch.Tensor:
    """Return distinct experts for each token, some experts far more often than others.

    An expert's popularity is normal with the given deviation, one for the draw; a token takes
    those whose popularity plus its own Gumbel noise is largest.

    Returns:
        [n_tokens, n_chosen], int64, the best first.
    """
    popularity = popularity_std * torch.randn(n_experts, device=device)
    waiting_time = torch.empty(n_tokens, n_experts, device=device).exponential_()
    gumbel = -waiting_time.log()
    ranked = (popularity + gumbel).argsort(dim=-1, descending=True)
    return ranked[:, :n_chosen].contiguous()
