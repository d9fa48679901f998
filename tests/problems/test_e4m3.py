"""The table of float8_e4m3fn, code by code, and the rounding into it."""

import math

import pytest
import torch

from problems.kv_cache.e4m3 import MAX, decode, encode

ALL_CODES = torch.arange(256, dtype=torch.uint8)


def value(code: int) -> float:
    """A sign, four bits of exponent with bias 7, three of mantissa; subnormal at exponent 0."""
    sign = -1.0 if code >> 7 else 1.0
    exponent, mantissa = (code >> 3) & 15, code & 7
    if (exponent, mantissa) == (15, 7):
        return math.nan
    if exponent == 0:
        return sign * mantissa / 8 * 2.0**-6
    return sign * (1 + mantissa / 8) * 2.0 ** (exponent - 7)


def test_every_code_decodes_to_its_value() -> None:
    decoded = decode(ALL_CODES)
    assert decoded.dtype is torch.float32
    expected = torch.tensor([value(code) for code in range(256)], dtype=torch.float32)
    torch.testing.assert_close(decoded, expected, rtol=0, atol=0, equal_nan=True)
    assert torch.equal(decoded.signbit()[[0, 128]], torch.tensor([False, True]))


def test_the_largest_value_is_448_and_only_two_codes_are_nan() -> None:
    decoded = decode(ALL_CODES)
    assert decoded.nan_to_num(nan=0.0).max() == MAX == value(0x7E)
    assert decoded.isnan().nonzero().flatten().tolist() == [0x7F, 0xFF]
    assert not decoded.isinf().any()


def test_every_value_encodes_to_its_own_code() -> None:
    codes = ALL_CODES[~decode(ALL_CODES).isnan()]
    assert torch.equal(encode(decode(codes)), codes)
    assert torch.equal(encode(decode(codes).double()), codes)


@pytest.mark.parametrize("sign", [0x00, 0x80])
def test_what_lies_between_two_values_goes_to_the_nearer_and_ties_to_the_even_code(
    sign: int,
) -> None:
    for code in range(0x7E):
        low, high = value(code | sign), value((code + 1) | sign)
        between = torch.tensor([low + share * (high - low) for share in (0.49, 0.5, 0.51)])
        even = code + (code & 1)
        expected = [code | sign, even | sign, (code + 1) | sign]
        assert encode(between).tolist() == expected


def test_float64_values_pass_through_float32() -> None:
    # 1.0625 is the tie between 1.0 (0x38) and 1.125 (0x39). Above it by 2^-30, a float32 is the
    # tie itself and goes to the even code.
    assert encode(torch.tensor([1.0625 + 2.0**-30], dtype=torch.float64)).tolist() == [0x38]
