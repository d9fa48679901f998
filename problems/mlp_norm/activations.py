"""Activation functions of feed-forward blocks and their derivatives, in the dtype they are given.

Every function is evaluated in at least float32 and rounded once, except the derivatives, whose
intermediates keep the dtype of x: call those with float32 or float64.
"""

import math

import torch

TANH_FACTOR = math.sqrt(2 / math.pi)
CUBIC_FACTOR = 0.044715


def silu(x: torch.Tensor) -> torch.Tensor:
    """Return x * sigmoid(x)."""
    return torch.nn.functional.silu(x)


def gelu_erf(x: torch.Tensor) -> torch.Tensor:
    """Return x * Phi(x), Phi the standard normal distribution function."""
    return torch.nn.functional.gelu(x)


def gelu_tanh(x: torch.Tensor) -> torch.Tensor:
    """Return x / 2 * (1 + tanh(TANH_FACTOR * (x + CUBIC_FACTOR * x^3)))."""
    return torch.nn.functional.gelu(x, approximate="tanh")


def silu_derivative(x: torch.Tensor) -> torch.Tensor:
    """Return s * (1 + x * (1 - s)) with s = sigmoid(x)."""
    share = torch.sigmoid(x)
    return share * (1 + x * (1 - share))


def gelu_tanh_derivative(x: torch.Tensor) -> torch.Tensor:
    """Return the derivative of gelu_tanh at x."""
    t = torch.tanh(TANH_FACTOR * (x + CUBIC_FACTOR * x * x * x))
    slope = TANH_FACTOR * (1 + 3 * CUBIC_FACTOR * x * x)
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope
