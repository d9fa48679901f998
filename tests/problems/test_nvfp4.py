"""The NVFP4 codec and the product that decodes it, by hand-made operands and by loops."""

import math

import pytest
import torch

from problems.quantization.nvfp4 import (
    E2M1,
    Nvfp4,
    dequantise,
    from_parts,
    pack,
    quantise,
    to_parts,
    unpack,
)
from tests.problems.loading import draw, load, relative_error, upcast


def codes_of(values: list[float]) -> list[int]:
    """Quantise sixteen values whose largest magnitude is 6, so that every scale is 1."""
    block = [6.0, *values, *[0.0] * (15 - len(values))]
    quantised = quantise(torch.tensor([[block]]))
    assert float(quantised.scales.float() * quantised.decode_scale) == pytest.approx(1.0, rel=1e-6)
    return unpack(quantised.codes)[0, 0, 1 : 1 + len(values)].tolist()


def test_the_low_nibble_comes_first() -> None:
    packed = pack(torch.tensor([1, 2, 15, 0]))
    assert packed.tolist() == [0x21, 0x0F]
    assert unpack(packed).tolist() == [1, 2, 15, 0]


@pytest.mark.parametrize("sign", [1, -1])
def test_values_go_to_the_nearest_element_and_stay_there(sign: int) -> None:
    values = [sign * value for value in E2M1[1:8]]
    assert codes_of(values) == [code + (8 if sign < 0 else 0) for code in range(1, 8)]
    nearby = [sign * value for value in (0.26, 0.74, 1.3, 1.7, 2.6, 3.4, 5.1)]
    assert [code & 7 for code in codes_of(nearby)] == [1, 1, 3, 3, 5, 5, 7]


def test_ties_go_to_the_even_code() -> None:
    assert codes_of([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0]) == [0, 2, 2, 4, 4, 6, 6]


def test_a_tiny_negative_is_code_eight_and_negative_zero_is_code_zero() -> None:
    assert codes_of([-0.1, -0.0]) == [8, 0]


def test_scales_come_from_true_quotients() -> None:
    torch.manual_seed(0)
    for value in torch.rand(200).tolist():
        quantised = quantise(torch.full((1, 1, 16), value))
        encode = torch.tensor(2688.0) / torch.tensor(value)
        assert quantised.decode_scale == torch.tensor(1.0) / encode
        scale = torch.tensor(value) / torch.tensor(6.0) * encode
        assert quantised.scales.float() == scale.to(torch.float8_e4m3fn).float()


def test_parts_make_the_tensor_again() -> None:
    torch.manual_seed(0)
    quantised = quantise(torch.randn(2, 3, 32))
    again = from_parts(*to_parts(quantised))
    assert again.decode_scale.dtype is torch.float32
    assert torch.equal(dequantise(again, torch.float64), dequantise(quantised, torch.float64))


def test_an_outlier_silences_its_own_block_only() -> None:
    tensor = torch.full((1, 1, 32), 0.01)
    tensor[0, 0, 3] = 1.0
    decoded = dequantise(quantise(tensor), torch.float64)[0, 0]
    assert decoded[3] == pytest.approx(1.0, rel=0.07)
    assert (decoded[:16] == 0).sum() == 15
    assert decoded[16:].tolist() == pytest.approx([0.01] * 16, rel=0.07)


def test_an_all_zero_tensor_stays_zero() -> None:
    quantised = quantise(torch.zeros(1, 2, 32))
    assert (quantised.codes == 0).all()
    assert (dequantise(quantised, torch.float64) == 0).all()


def test_a_block_too_small_for_its_scale_decodes_to_zero_without_nan() -> None:
    tensor = torch.zeros(1, 1, 32)
    tensor[0, 0, 0] = 1.0
    tensor[0, 0, 16:] = -1e-7
    assert (dequantise(quantise(tensor), torch.float64)[0, 0, 16:] == 0).all()


def test_normal_values_lose_about_a_tenth() -> None:
    torch.manual_seed(0)
    tensor = torch.randn(2, 64, 128)
    assert 0.08 < relative_error(dequantise(quantise(tensor), torch.float64), tensor) < 0.12


def test_the_product_decodes_each_operand_element_by_element() -> None:
    inputs = upcast(draw(60))
    output = load(60).reference(*inputs)

    def element(operand: int, row: int, column: int) -> float:
        codes, scales, whole = inputs[3 * operand : 3 * operand + 3]
        byte = int(codes[0, row, column // 2])
        code = byte >> 4 if column % 2 else byte & 15
        return E2M1[code] * float(scales[0, row, column // 16]) * float(whole)

    for m, n in ((0, 0), (63, 239), (17, 100)):
        expected = math.fsum(element(0, m, k) * element(1, n, k) for k in range(240))
        assert float(output[0, m, n]) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_one_operand_with_swapped_nibbles_is_far_off() -> None:
    inputs = draw(60)
    right = load(60).reference(*inputs)
    inputs[0] = (inputs[0] >> 4) | (inputs[0] << 4)
    assert relative_error(load(60).reference(*inputs), right) > 1


def test_batches_keep_apart() -> None:
    torch.manual_seed(1)
    left, right = quantise(torch.randn(2, 3, 32)), quantise(torch.randn(2, 5, 32))
    output = load(60).reference(
        left.codes, left.scales, left.decode_scale, right.codes, right.scales, right.decode_scale
    )
    for batch in range(2):
        a = dequantise(_slice(left, batch), torch.float32)
        b = dequantise(_slice(right, batch), torch.float32)
        torch.testing.assert_close(output[batch], a @ b.t())


def test_random_bytes_use_all_sixteen_codes_and_no_scale_is_nan() -> None:
    torch.manual_seed(0)
    module = load(60)
    module.WORKLOADS["tiny"] = module.Sizes(m=8, n=16, k=256, random_codes=True)
    try:
        inputs = module.make_inputs("tiny", "cpu")
    finally:
        del module.WORKLOADS["tiny"]
    assert set(unpack(inputs[0]).flatten().tolist()) == set(range(16))
    assert not inputs[1].float().isnan().any()


def _slice(tensor: Nvfp4, batch: int) -> Nvfp4:
    return Nvfp4(tensor.codes[batch], tensor.scales[batch], tensor.decode_scale)
