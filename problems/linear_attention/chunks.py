"""Time cut into chunks, and how much of each token is left within one."""

import torch
from torch.nn import functional


def split(x: torch.Tensor, *, chunk: int, dim: int) -> torch.Tensor:
    """Return x with its axis `dim` of time as two axes: chunks, and `chunk` tokens of each.

    Time is padded with zeros to whole chunks. `dim` is negative.
    """
    missing = -x.shape[dim] % chunk
    padded = functional.pad(x, (0, 0) * (-dim - 1) + (0, missing))
    return padded.reshape(*x.shape[:dim], -1, chunk, *padded.shape[padded.dim() + dim + 1 :])


def decay_matrix(log_decay: torch.Tensor) -> torch.Tensor:
    """Return [..., T, T]: what is left of token j at token i, 0 where j comes after i.

    Entry (i, j) is exp of the log decays of tokens j + 1 to i, summed without the ones before:
    the difference of two running sums would cancel, and its exponential apart could overflow.

    Args:
        log_decay: [..., T], natural logarithms, at most 0.
    """
    n_tokens = log_decay.shape[-1]
    square = torch.ones(n_tokens, n_tokens, dtype=torch.bool, device=log_decay.device)
    steps = log_decay.unsqueeze(-1).expand(*log_decay.shape, n_tokens)
    sums = steps.masked_fill(square.triu(), 0).cumsum(dim=-2)
    return sums.masked_fill(square.triu(1), -torch.inf).exp()
