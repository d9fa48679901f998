"""Random weights that keep the size of what passes through them."""

import math

import torch


def linear_weight(
    n_out: int, n_in: int, *, dtype: torch.dtype, device: str | torch.device
) -> torch.Tensor:
    """Draw [n_out, n_in] from N(0, 1) in `dtype` and divide by sqrt(n_in), rounding again."""
    return torch.randn(n_out, n_in, dtype=dtype, device=device) / math.sqrt(n_in)
