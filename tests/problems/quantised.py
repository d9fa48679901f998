"""Both codecs a second time, by search in a table of values; and draws with other sizes."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.problems.loading import draw, load

BLOCK = 128


def _e4m3(code: int) -> float:
    """Read an e4m3fn byte below 127: four bits of exponent with bias 7, three of fraction."""
    exponent, fraction = code >> 3, code & 7
    return math.ldexp(8 + fraction, exponent - 10) if exponent else math.ldexp(fraction, -9)


E4M3 = torch.tensor([_e4m3(code) for code in range(127)], dtype=torch.float64)
E2M1 = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6], dtype=torch.float64)


def nearest(values: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """Return the index of the entry of `table` nearest to each magnitude, the even one on a tie."""
    middles = (table[:-1] + table[1:]) / 2
    size = values.abs().double().contiguous()
    below, above = (torch.searchsorted(middles, size, right=right) for right in (False, True))
    return torch.where(below % 2 == 0, below, above)


def through_fp8(matrix: torch.Tensor, height: int) -> torch.Tensor:
    """Quantise in blocks of height x 128, one after the other, and decode; [rows, columns]."""
    decoded = torch.empty(matrix.shape, dtype=torch.float64)
    for top in range(0, matrix.shape[0], height):
        for left in range(0, matrix.shape[1], BLOCK):
            place = slice(top, top + height), slice(left, left + BLOCK)
            block = matrix[place].float()
            scale = torch.maximum(block.abs().max() / torch.tensor(448.0), torch.tensor(1e-12))
            quotient = (block / scale).clamp(-448, 448)
            decoded[place] = E4M3[nearest(quotient, E4M3)] * block.sign() * scale.double()
    return decoded


def through_nvfp4(tensor: torch.Tensor) -> torch.Tensor:
    """Quantise and decode along the last axis, sixteen columns at a time."""
    tensor = tensor.float()
    encode = torch.tensor(2688.0) / tensor.abs().max()
    whole = 1 / encode
    decoded = torch.empty(tensor.shape, dtype=torch.float64)
    for left in range(0, tensor.shape[-1], 16):
        block = tensor[..., left : left + 16]
        ideal = block.abs().amax(-1, keepdim=True) / torch.tensor(6.0) * encode
        scale = E4M3[nearest(ideal.clamp(max=448), E4M3)].float()
        inverse = (1 / (scale * whole)).clamp(max=torch.finfo(torch.float32).max)
        size = E2M1[nearest((block * inverse).clamp(-6, 6), E2M1)]
        decoded[..., left : left + 16] = size * block.sign() * (scale.double() * whole.double())
    return decoded


def decode(codes: torch.Tensor, scales: torch.Tensor, whole: float) -> torch.Tensor:
    """Read packed NVFP4 codes [rows, columns / 2] nibble by nibble."""
    decoded = torch.empty(codes.shape[0], 2 * codes.shape[1], dtype=torch.float64)
    for column in range(decoded.shape[1]):
        byte = codes[:, column // 2].long()
        code = byte // 16 if column % 2 else byte % 16
        size = E2M1[code % 8] * scales[:, column // 16].double() * whole
        decoded[:, column] = torch.where(code < 8, size, -size)
    return decoded


def with_sizes(monkeypatch: pytest.MonkeyPatch, number: int, like: str, **changes: Any) -> Any:
    """Draw a workload like another, with some sizes changed."""
    workloads = load(number).WORKLOADS
    monkeypatch.setitem(workloads, "changed", replace(workloads[like], **changes))
    return draw(number, "changed")
