"""Draws that several problems share: weights whose tiles differ in size, and NVFP4 weights."""

import math

import torch

from problems.quantization.fp8_blocks import BLOCK
from problems.quantization.nvfp4 import Nvfp4, quantise


def tiled_weight(n_rows: int, n_columns: int, *, dtype: torch.dtype, device: str) -> torch.Tensor:
    """Return normal values over sqrt(columns), each 128 x 128 tile times a gain of 0.5 to 2."""
    weight = torch.randn(n_rows, n_columns, dtype=dtype, device=device) / math.sqrt(n_columns)
    shape = (n_rows // BLOCK, n_columns // BLOCK)
    gain = torch.rand(shape, dtype=dtype, device=device) * 1.5 + 0.5
    return weight * gain.repeat_interleave(BLOCK, dim=0).repeat_interleave(BLOCK, dim=1)


def nvfp4_weight(*shape: int, device: str) -> Nvfp4:
    """Return the NVFP4 form of float32 normal values over sqrt(columns)."""
    drawn = torch.randn(shape, dtype=torch.float32, device=device)
    return quantise(drawn / math.sqrt(shape[-1]))
