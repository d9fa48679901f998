"""The NVFP4 codec: four-bit elements, a scale for every sixteen, and one for the tensor.

A logical tensor [batch, rows, columns] is stored as `codes` [batch, rows, columns / 2] (uint8:
element 2j in the low nibble of byte j, element 2j + 1 in the high one), `scales` [batch, rows,
columns / 16] (float8_e4m3fn, row-major) and a global decode scale.
"""

from dataclasses import dataclass

import torch

BLOCK = 16
E2M1_MAX = 6.0
E4M3_MAX = 448.0
# Codes 0 to 15; bit 3 is the sign.
E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0)

_FLOAT32_MAX = torch.finfo(torch.float32).max


@dataclass(frozen=True)
class Nvfp4:
    """A quantised tensor; `decode_scale` is a float32 tensor [1]."""

    codes: torch.Tensor
    scales: torch.Tensor
    decode_scale: torch.Tensor


def quantise(tensor: torch.Tensor) -> Nvfp4:
    """Quantise along the last axis, a multiple of 16; always in float32.

    The global scale comes from the largest magnitude of the whole tensor. Ties go to the even
    code; negative values too small to show become code 8.
    """
    blocks = torch.unflatten(tensor.float(), -1, (-1, BLOCK))
    largest = blocks.abs().amax(dim=-1)
    # True quotients: with a Python number torch multiplies by a reciprocal, one rounding off.
    whole = largest.amax()
    encode = (torch.full_like(whole, E4M3_MAX * E2M1_MAX) / whole).clamp(max=_FLOAT32_MAX)
    encode = torch.where(encode == 0, 1.0, encode)
    decode = 1 / encode
    block_scale = largest / torch.full_like(largest, E2M1_MAX) * encode
    scales = block_scale.clamp(-E4M3_MAX, E4M3_MAX).to(torch.float8_e4m3fn)
    factor = (1 / (scales.float() * decode)).clamp(max=_FLOAT32_MAX)
    scaled = (blocks * factor.unsqueeze(-1)).clamp(-E2M1_MAX, E2M1_MAX)
    return Nvfp4(pack(_nearest(scaled).flatten(-2)), scales, decode.reshape(1))


def dequantise(tensor: Nvfp4, dtype: torch.dtype) -> torch.Tensor:
    """Return the logical tensor in `dtype`: code value * (block scale * global scale)."""
    values = torch.tensor(E2M1, dtype=dtype, device=tensor.codes.device)[unpack(tensor.codes)]
    scales = tensor.scales.to(dtype) * tensor.decode_scale.to(dtype)
    return (torch.unflatten(values, -1, (-1, BLOCK)) * scales.unsqueeze(-1)).flatten(-2)


def product(left: Nvfp4, right: Nvfp4, dtype: torch.dtype) -> torch.Tensor:
    """Return dequantised left @ dequantised right^T, formed and returned in `dtype`."""
    return dequantise(left, dtype) @ dequantise(right, dtype).transpose(-1, -2)


def from_parts(codes: torch.Tensor, scales: torch.Tensor, decode_scale: float) -> Nvfp4:
    """Return the tensor whose global decode scale is handed over as a number."""
    whole = torch.full((1,), decode_scale, dtype=torch.float32, device=codes.device)
    return Nvfp4(codes, scales, whole)


def to_parts(tensor: Nvfp4) -> tuple[torch.Tensor, torch.Tensor, float]:
    """Return codes, scales and the global decode scale as a number; waits for the device."""
    return tensor.codes, tensor.scales, tensor.decode_scale.item()


def pack(codes: torch.Tensor) -> torch.Tensor:
    """Put two codes of the last axis into each byte, the first into the low nibble."""
    low, high = torch.unflatten(codes.to(torch.uint8), -1, (-1, 2)).unbind(-1)
    return low | (high << 4)


def unpack(packed: torch.Tensor) -> torch.Tensor:
    """Return the codes of packed bytes as int64, twice as many on the last axis."""
    return torch.stack((packed & 15, packed >> 4), dim=-1).flatten(-2).long()


def _nearest(scaled: torch.Tensor) -> torch.Tensor:
    size = scaled.abs()
    code = (size > 0.25).to(torch.uint8)
    for threshold in (1.25, 2.5, 5.0):
        code += size > threshold
    # At these three the even code is the upper one.
    for threshold in (0.75, 1.75, 3.5):
        code += size >= threshold
    return code + 8 * (scaled < 0).to(torch.uint8)
