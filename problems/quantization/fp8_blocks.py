"""The FP8 block codec: e4m3 elements, and a float32 scale per run of 128 or per 128 x 128 tile.

Activations are scaled along their rows, one scale per 128 neighbours; weights by square tiles.
All scales are decode scales: an element is its code's value times its block's scale.
"""

from dataclasses import dataclass

import torch

BLOCK = 128
E4M3_MAX = 448.0
SCALE_FLOOR = 1e-12


@dataclass(frozen=True)
class Fp8Blocks:
    """A quantised matrix, or a stack of them.

    `codes` is [..., rows, columns], float8_e4m3fn; `scales` is [..., rows, columns / 128] for an
    activation and [..., rows / 128, columns / 128] for a weight, float32 (float64 when the anchor
    is computed from scales that are inputs).
    """

    codes: torch.Tensor
    scales: torch.Tensor


def quantise_rows(tensor: torch.Tensor) -> Fp8Blocks:
    """Quantise an activation [..., rows, columns], 128 neighbours of a row at a time.

    Always in float32; ties go to the even code, and blocks of zeros get the scale SCALE_FLOOR.
    """
    blocks = torch.unflatten(tensor.float(), -1, (-1, BLOCK))
    scales = _scales(blocks.abs().amax(dim=-1))
    return Fp8Blocks(_codes(blocks, scales.unsqueeze(-1)).flatten(-2), scales)


def quantise_tiles(tensor: torch.Tensor) -> Fp8Blocks:
    """Quantise a weight [..., rows, columns] by tiles of 128 x 128, otherwise as quantise_rows."""
    bands = torch.unflatten(tensor.float(), -2, (-1, BLOCK))
    tiles = torch.unflatten(bands, -1, (-1, BLOCK))
    scales = _scales(tiles.abs().amax(dim=(-3, -1)))
    codes = _codes(tiles, scales.unsqueeze(-2).unsqueeze(-1))
    return Fp8Blocks(codes.flatten(-2).flatten(-3, -2), scales)


def dequantise(tensor: Fp8Blocks, dtype: torch.dtype) -> torch.Tensor:
    """Return the matrix in `dtype`; the shapes tell by which recipe it was quantised."""
    height = tensor.codes.shape[-2] // tensor.scales.shape[-2]
    scales = tensor.scales.to(dtype).repeat_interleave(height, dim=-2)
    blocks = torch.unflatten(tensor.codes.to(dtype), -1, (-1, BLOCK))
    return (blocks * scales.unsqueeze(-1)).flatten(-2)


def product(left: Fp8Blocks, right: Fp8Blocks, dtype: torch.dtype) -> torch.Tensor:
    """Return dequantised left @ dequantised right^T, formed and returned in `dtype`."""
    return dequantise(left, dtype) @ dequantise(right, dtype).transpose(-1, -2)


def _scales(largest: torch.Tensor) -> torch.Tensor:
    # By a tensor: a GPU divides by a Python number through its reciprocal, one rounding off.
    return (largest / torch.full_like(largest, E4M3_MAX)).clamp(min=SCALE_FLOOR)


def _codes(blocks: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    return (blocks / scales).clamp(-E4M3_MAX, E4M3_MAX).to(torch.float8_e4m3fn)
