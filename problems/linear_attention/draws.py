"""Draws that several problems of the family share."""

from collections.abc import Sequence

import torch

GATE_NORMALISER = 16


def normal(shape: Sequence[int], device: str) -> torch.Tensor:
    """Draw a standard normal bfloat16 tensor."""
    return torch.randn(*shape, dtype=torch.bfloat16, device=device)


def uniform(low: float, high: float, *, shape: Sequence[int], device: str) -> torch.Tensor:
    """Draw a bfloat16 tensor evenly between low and high."""
    return torch.empty(*shape, dtype=torch.bfloat16, device=device).uniform_(low, high)


def shares(shape: Sequence[int], device: str) -> torch.Tensor:
    """Draw bfloat16 numbers between 0 and 1: the sigmoid of standard normal ones."""
    return torch.sigmoid(normal(shape, device))


def log_decays(shape: Sequence[int], device: str) -> torch.Tensor:
    """Draw negative bfloat16 log decays of mean -0.05: a sixteenth of a log-sigmoid."""
    drawn = torch.randn(*shape, dtype=torch.float32, device=device)
    return (torch.nn.functional.logsigmoid(drawn) / GATE_NORMALISER).to(torch.bfloat16)


def rounded_normal(
    mean: float, deviation: float, *, shape: Sequence[int], device: str
) -> torch.Tensor:
    """Draw a normal tensor in float32 and round it to bfloat16 once."""
    drawn = torch.randn(*shape, dtype=torch.float32, device=device)
    return (mean + deviation * drawn).to(torch.bfloat16)
