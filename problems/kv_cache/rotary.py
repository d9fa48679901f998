"""Rotary embedding over halves: element i of the rotated part pairs with i + half its width."""

import torch


def table(n_positions: int, *, width: int, base: float, device: str) -> torch.Tensor:
    """Return [positions, width] bfloat16: width / 2 cosines, then the sines of the same angles.

    Angle j of position p is p * base^(-2j / width), in float32 before it is rounded.
    """
    powers = torch.arange(0, width, 2, dtype=torch.float32, device=device) / width
    positions = torch.arange(n_positions, dtype=torch.float32, device=device)
    angles = torch.outer(positions, base**-powers)
    return torch.cat((angles.cos(), angles.sin()), dim=-1).to(torch.bfloat16)


def rotate(x: torch.Tensor, cos_sin: torch.Tensor) -> torch.Tensor:
    """Return x [tokens, heads, width] turned by its tokens' rows [tokens, width] of a table.

    Products and sums are formed, and rounded, in the dtype of x.
    """
    cos, sin = cos_sin.to(x.dtype).unsqueeze(1).chunk(2, dim=-1)
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
