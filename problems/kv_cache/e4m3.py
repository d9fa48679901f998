"""Bytes of the format float8_e4m3fn: no infinity, largest value 448, NaN at 0x7F and 0xFF."""

import torch

MAX = 448.0


def encode(values: torch.Tensor) -> torch.Tensor:
    """Return the codes, uint8, of values between -448 and 448: nearest, ties to even.

    Values go through float32 first, whatever their dtype.
    """
    return values.to(torch.float32).to(torch.float8_e4m3fn).view(torch.uint8)


def decode(codes: torch.Tensor) -> torch.Tensor:
    """Return what uint8 codes stand for, in float32 and without error."""
    return codes.view(torch.float8_e4m3fn).to(torch.float32)
