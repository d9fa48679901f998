"""Never uses a DSL."""

import torch


def solve(hidden_states, weight):
    rows = hidden_states.float()
    inverse = torch.rsqrt(rows.square().mean(dim=-1, keepdim=True) + 1e-6)
    return (rows * inverse * weight.float()).to(torch.bfloat16)
