"""The FP8 block codec, against the whole code table and by loops."""

import math
from bisect import bisect_left
from itertools import pairwise

import pytest
import torch

from problems.quantization.fp8_blocks import (
    BLOCK,
    SCALE_FLOOR,
    Fp8Blocks,
    dequantise,
    product,
    quantise_rows,
    quantise_tiles,
)
from tests.problems.loading import relative_error


def value_of(code: int) -> float:
    """Read an e4m3fn byte: sign, four bits of exponent with bias 7, three of fraction."""
    exponent, fraction = code >> 3 & 15, code & 7
    size = math.ldexp(8 + fraction, exponent - 10) if exponent else math.ldexp(fraction, -9)
    return -size if code & 128 else size


# Bytes 0 to 126 ascend; 127 is not a number.
SIZES = [value_of(code) for code in range(127)]


def nearest(size: float) -> int:
    """Return the byte nearest to a magnitude of at most 448; of two equally near, the even one."""
    above = bisect_left(SIZES, size)
    candidates = [code for code in (above - 1, above) if 0 <= code < len(SIZES)]
    return min(candidates, key=lambda code: (abs(SIZES[code] - size), code & 1))


def codes_of(values: list[float]) -> list[int]:
    """Quantise up to 127 values beside a 448, which makes the scale of their block 1."""
    block = [448.0, *values, *[0.0] * (BLOCK - 1 - len(values))]
    quantised = quantise_rows(torch.tensor([block]))
    assert quantised.scales.tolist() == [[1.0]]
    return quantised.codes.view(torch.uint8)[0, 1 : 1 + len(values)].tolist()


def test_the_code_table_is_that_of_e4m3fn() -> None:
    codes = torch.arange(256, dtype=torch.uint8)
    values = codes.view(torch.float8_e4m3fn).double()
    assert (SIZES[1], SIZES[8], SIZES[126]) == (2.0**-9, 2.0**-6, 448.0)
    for code in range(256):
        value = float(values[code])
        assert math.isnan(value) if code & 127 == 127 else value == value_of(code)


@pytest.mark.parametrize("sign", [1, -1])
def test_every_value_of_the_table_keeps_its_code(sign: int) -> None:
    expected = [code + (128 if sign < 0 else 0) for code in range(1, 127)]
    assert codes_of([sign * size for size in SIZES[1:]]) == expected


def test_every_tie_goes_to_the_even_code() -> None:
    middles = [(low + high) / 2 for low, high in pairwise(SIZES)]
    expected = [code + (code & 1) for code in range(126)]
    assert codes_of(middles) == expected


def test_a_hair_beside_a_tie_goes_to_the_nearer_code() -> None:
    middles = [(low + high) / 2 for low, high in pairwise(SIZES)]
    assert codes_of([middle * (1 - 2**-20) for middle in middles]) == list(range(126))
    assert codes_of([middle * (1 + 2**-20) for middle in middles]) == list(range(1, 127))


def test_a_quotient_rounded_beyond_448_saturates() -> None:
    # Of thirty thousand magnitudes some amax / (amax / 448) comes out above 448.
    largest = torch.linspace(1, 2, 2**15).unsqueeze(-1)
    blocks = torch.nn.functional.pad(largest, (0, BLOCK - 1))
    quantised = quantise_rows(blocks)
    assert (blocks[:, :1] / quantised.scales).max() > 448
    assert (quantised.codes.view(torch.uint8)[:, 0] == 126).all()


def test_a_block_below_the_floor_is_scaled_by_the_floor() -> None:
    block = torch.full((1, BLOCK), 100 * SCALE_FLOOR)
    quantised = quantise_rows(block)
    assert quantised.scales.item() == torch.tensor(SCALE_FLOOR).item()
    # 100 lies between 96 and 104.
    assert quantised.codes.double().unique().tolist() in ([96.0], [104.0])


@pytest.mark.parametrize("quantise", [quantise_rows, quantise_tiles])
def test_zeros_stay_zeros(quantise: object) -> None:
    quantised = quantise(torch.zeros(BLOCK, 2 * BLOCK))  # type: ignore[operator]
    assert (quantised.codes.view(torch.uint8) == 0).all()
    assert (quantised.scales == SCALE_FLOOR).all()


def test_a_row_is_coded_by_its_own_block_of_neighbours() -> None:
    torch.manual_seed(0)
    rows = torch.randn(3, 2 * BLOCK) * torch.tensor([[1e-3], [1.0], [1e3]])
    quantised = quantise_rows(rows)
    scales, codes = quantised.scales, quantised.codes.view(torch.uint8)
    for m in range(3):
        for j in range(2):
            block = rows[m, j * BLOCK : (j + 1) * BLOCK]
            largest = torch.tensor(max(abs(value) for value in block.tolist()))
            assert scales[m, j] == largest / 448
            for k, quotient in enumerate((block / scales[m, j]).tolist()):
                sign = 128 if quotient < 0 else 0
                assert codes[m, j * BLOCK + k] == nearest(min(abs(quotient), 448.0)) + sign


def test_a_tile_has_the_scale_of_its_largest_element() -> None:
    weight = torch.zeros(3 * BLOCK, 2 * BLOCK)
    weight[130, 127] = -448.0
    weight[130, 128] = 896.0
    weight[255, 255] = 1.0
    quantised = quantise_tiles(weight)
    floor = torch.tensor(SCALE_FLOOR).item()
    assert quantised.scales.tolist() == [[floor, floor], [1.0, 2.0], [floor, floor]]
    decoded = dequantise(quantised, torch.float64)
    assert (decoded[130, 127], decoded[130, 128], decoded[255, 255]) == (-448.0, 896.0, 1.0)
    assert (decoded != 0).sum() == 3


def test_an_outlier_silences_its_own_block_only() -> None:
    # Half of the smallest code, 2^-10, is what 1 / 448 of the outlier times 1 / 1024 comes to.
    tensor = torch.full((1, 2 * BLOCK), 0.99)
    tensor[0, 5] = 448 * 1024
    decoded = dequantise(quantise_rows(tensor), torch.float64)[0]
    assert (decoded[:BLOCK] != 0).nonzero().flatten().tolist() == [5]
    assert decoded[BLOCK:].tolist() == pytest.approx([0.99] * BLOCK, rel=1e-6)


def test_matrices_of_a_stack_keep_apart() -> None:
    torch.manual_seed(1)
    stack = torch.randn(2, BLOCK, 2 * BLOCK) * torch.tensor([1.0, 50.0]).reshape(2, 1, 1)
    for quantise in (quantise_rows, quantise_tiles):
        together = quantise(stack)
        for index in range(2):
            alone = quantise(stack[index])
            assert torch.equal(together.scales[index], alone.scales)
            decoded = dequantise(together, torch.float64)[index]
            assert torch.equal(decoded, dequantise(alone, torch.float64))


def test_the_product_decodes_each_operand_element_by_element() -> None:
    torch.manual_seed(2)
    left = quantise_rows(torch.randn(3, 2 * BLOCK))
    right = quantise_tiles(torch.randn(2 * BLOCK, 2 * BLOCK))
    output = product(left, right, torch.float64)
    for m, n in ((0, 0), (2, 200), (1, 127)):
        terms = (
            value_of(int(left.codes.view(torch.uint8)[m, k]))
            * float(left.scales[m, k // BLOCK])
            * value_of(int(right.codes.view(torch.uint8)[n, k]))
            * float(right.scales[n // BLOCK, k // BLOCK])
            for k in range(2 * BLOCK)
        )
        assert float(output[m, n]) == pytest.approx(math.fsum(terms), rel=1e-9, abs=1e-12)


def test_scales_of_float64_give_a_product_of_float64() -> None:
    left, right = quantise_rows(torch.ones(1, BLOCK)), quantise_tiles(torch.ones(BLOCK, BLOCK))
    wide = Fp8Blocks(left.codes, left.scales.double())
    assert product(wide, right, torch.float64).dtype is torch.float64


def test_normal_values_lose_about_a_fortieth() -> None:
    torch.manual_seed(0)
    tensor = torch.randn(BLOCK, 4 * BLOCK)
    for quantise in (quantise_rows, quantise_tiles):
        assert 0.02 < relative_error(dequantise(quantise(tensor), torch.float64), tensor) < 0.03
