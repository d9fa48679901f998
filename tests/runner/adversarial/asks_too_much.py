"""Asks torch for more memory than any limit allows."""

import cutlass
import torch

_DSL = cutlass.Float32


def solve(hidden_states, weight):
    return torch.zeros(1 << 40, dtype=torch.bfloat16)
