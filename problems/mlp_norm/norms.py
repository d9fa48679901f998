"""Normalisation of the last axis without weights, forwards and backwards.

The callers cast: everything here stays in the dtype of its first argument, float32 or float64.
"""

import torch


def layer_norm(x: torch.Tensor, eps: float) -> torch.Tensor:
    """Return (x - mean) / sqrt(biased variance + eps) of each row."""
    centred = x - x.mean(dim=-1, keepdim=True)
    return centred * torch.rsqrt(centred.square().mean(dim=-1, keepdim=True) + eps)


def rms_norm(x: torch.Tensor, eps: float) -> torch.Tensor:
    """Return x / sqrt(mean of squares + eps) of each row."""
    return x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + eps)


def rms_norm_gradient(
    weighted: torch.Tensor, normalized: torch.Tensor, rstd: torch.Tensor
) -> torch.Tensor:
    """Return rstd * (weighted - normalized * mean(weighted * normalized)), the gradient of x.

    Args:
        weighted: the gradient of the normalised rows: the output's gradient times the weight.
        normalized: the rows after normalisation, before the weight; the shape of weighted.
        rstd: what x was multiplied by, one per row, with a last axis of 1.
    """
    shared = (weighted * normalized).mean(dim=-1, keepdim=True)
    return rstd * (weighted - normalized * shared)
