"""Gives the right answer and zeroes its input."""

import cutlass
import torch

_DSL = cutlass.Float32


def solve(hidden_states, weight):
    rows = hidden_states.float()
    inverse = torch.rsqrt(rows.square().mean(dim=-1, keepdim=True) + 1e-6)
    y = (rows * inverse * weight.float()).to(torch.bfloat16)
    hidden_states.zero_()
    return y
