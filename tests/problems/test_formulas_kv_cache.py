"""The problems that write to paged caches, each against loops over tokens and heads."""

import math
from typing import Any

import pytest
import torch

from problems.kv_cache import rotary, slots
from tests.problems.loading import draw, load, upcast

ATOL = 1e-12


def rms_normed(x: list[float], eps: float) -> list[float]:
    root = math.sqrt(sum(value * value for value in x) / len(x) + eps)
    return [value / root for value in x]


def turned(x: list[float], row: list[float]) -> list[float]:
    """Multiply each pair (i, i + half), as a complex number, by its cos + i sin."""
    half = len(row) // 2
    result = list(x)
    for i in range(half):
        product = complex(x[i], x[i + half]) * complex(row[i], row[i + half])
        result[i], result[i + half] = product.real, product.imag
    return result


def close(actual: torch.Tensor, expected: list[float]) -> bool:
    return torch.allclose(actual, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=ATOL)


def run(number: int, inputs: list[Any]) -> tuple[tuple[torch.Tensor, ...], list[Any]]:
    """Run the reference on the inputs; return the outputs and untouched copies of the inputs."""
    before = [item.clone() if isinstance(item, torch.Tensor) else item for item in inputs]
    return load(number).reference(*inputs), before


def is_untouched(cache: torch.Tensor, before: torch.Tensor, mapping: torch.Tensor) -> bool:
    """Whether all slots of [blocks, block size, ...] that no token names are as before."""
    named = {slot for slot in mapping.tolist() if slot >= 0}
    size = cache.shape[1]
    rest = [s for s in range(cache.shape[0] * size) if s not in named]
    assert rest
    return all(torch.equal(cache[s // size, s % size], before[s // size, s % size]) for s in rest)


def test_a_table_holds_cosines_and_then_sines_of_growing_angles() -> None:
    rows = rotary.table(50, width=6, base=100.0, device="cpu")
    assert rows.dtype is torch.bfloat16
    for position in (0, 1, 49):
        angles = [position * 100.0 ** (-2 * j / 6) for j in range(3)]
        expected = [*map(math.cos, angles), *map(math.sin, angles)]
        assert rows[position].tolist() == pytest.approx(expected, abs=2**-8)


def test_bfloat16_rotation_rounds_both_products_and_their_sum() -> None:
    # 129/128 * 131/128 = 1.03143 rounds to 132/128 and (129/128)^2 = 1.01569 to 130/128, so the
    # difference is 2/128 = 0.015625. Rounded only once it would be 0.01574707.
    x = torch.tensor([[[1.0078125, 1.0078125]]], dtype=torch.bfloat16)
    row = torch.tensor([[1.0234375, 1.0078125]], dtype=torch.bfloat16)
    assert rotary.rotate(x, row)[0, 0].tolist() == [0.015625, 2.046875]


@pytest.mark.parametrize("seed", range(5))
def test_slots_are_distinct_with_padding_at_the_end_alone(seed: int) -> None:
    torch.manual_seed(seed)
    drawn = slots.draw(64, n_tokens=37, max_pads=8, device="cpu").tolist()
    kept = [slot for slot in drawn if slot >= 0]
    assert 1 <= len(drawn) - len(kept) <= 8
    assert drawn == kept + [-1] * (37 - len(kept))
    assert len(set(kept)) == len(kept)
    assert max(kept) < 64
    assert -1 not in slots.draw(64, n_tokens=64, max_pads=0, device="cpu")


def test_padding_does_not_count_from_the_end_of_the_cache() -> None:
    cache = torch.zeros(2, 3, 4)
    mapping = torch.tensor([-1, 4, -1])
    slots.append(cache, mapping, torch.arange(1.0, 4.0)[:, None].expand(3, 4))
    assert (cache[1, 1] == 2).all()
    assert cache.sum() == 8


def test_glm_heads_are_normalised_rotated_in_front_and_cached() -> None:
    (q, cache), before = run(19, upcast(draw(19)))
    qkv, positions, q_weight, k_weight, table, mapping, old, eps = before
    for token in range(0, 37, 3):
        heads = qkv[token].view(8, 16).tolist()
        row = table[positions[token]].tolist()

        def expected(
            head: int, weight: torch.Tensor, heads: Any = heads, row: Any = row
        ) -> list[float]:
            normed = rms_normed(heads[head], eps)
            return turned([x * w for x, w in zip(normed, weight.tolist(), strict=True)], row)

        for head in range(4):
            assert close(q[token, head], expected(head, q_weight))
        slot = int(mapping[token])
        for head in range(2) if slot >= 0 else ():
            assert close(cache[0, slot // 4, slot % 4, head], expected(4 + head, k_weight))
            assert cache[1, slot // 4, slot % 4, head].tolist() == heads[6 + head]
    assert is_untouched(cache[0], old[0], mapping)
    assert is_untouched(cache[1], old[1], mapping)


def test_glm_values_are_cached_bit_for_bit() -> None:
    (_, cache), before = run(19, draw(19))
    kept = before[5][before[5] >= 0]
    values = before[0][: len(kept)].view(len(kept), 8, 16)[:, 6:]
    assert torch.equal(cache[1, kept // 4, kept % 4], values)


def test_mla_queries_are_projected_and_their_tails_rotated() -> None:
    (q_out, cache), before = run(20, upcast(draw(20)))
    qkv, weight, positions, table, mapping, old = before
    for token in range(0, 37, 5):
        row = table[positions[token]].tolist()
        latent = qkv[token].tolist()
        for head in range(2):
            matrix = weight[head * 136 : (head + 1) * 136]
            product = [float(w @ qkv[token, :48]) for w in matrix]
            assert close(q_out[token, head], product[:128] + turned(product[128:], row))
        if (slot := int(mapping[token])) >= 0:
            entry = cache[slot // 4, slot % 4, 0]
            assert entry[:16].tolist() == latent[48:64]
            assert close(entry[16:], turned(latent[64:], row))
    assert is_untouched(cache, old, mapping)


def test_mla_queries_of_padding_are_computed_too() -> None:
    (q_out, _), before = run(20, draw(20))
    assert before[4][-1] == -1
    assert q_out[-1].abs().max() > 0.01


@pytest.mark.parametrize("workload", ["smoke", "heldout_1"])
def test_each_token_and_head_has_its_own_fp8_scale(workload: str) -> None:
    outputs, before = run(21, upcast(draw(21, workload)))
    rows, mapping, old = before[:2], before[2], before[3:]
    size = outputs[0].shape[1]
    step = torch.finfo(torch.float8_e4m3fn).eps  # of the format: 1/8
    for kind in range(2):
        codes, scales = outputs[kind], outputs[kind + 2]
        for token, slot in enumerate(mapping.tolist()):
            if slot < 0:
                continue
            x, cell = rows[kind][token], (slot // size, slot % size)
            for head in range(x.shape[0]):
                largest = max(abs(v) for v in x[head].tolist())
                assert float(scales[cell][head]) == pytest.approx(max(largest / 448, 1e-6))
            decoded = codes[cell].view(torch.float8_e4m3fn).double() * scales[cell][:, None]
            # Half a step of the value's own binade, or of the least one.
            room = x.abs() * step / 2 + scales[cell][:, None] * 2.0**-10
            assert ((decoded - x).abs() <= room * (1 + 1e-6)).all()
            assert not ((codes[cell] & 127) == 127).any()
        assert is_untouched(codes, old[kind], mapping)
        assert is_untouched(scales, old[kind + 2], mapping)


def test_a_row_of_zeros_and_one_of_a_single_magnitude_have_known_codes() -> None:
    (codes, _, scales, _), before = run(21, draw(21, "heldout_1"))
    zero, constant, _ = before[2].tolist()
    assert (codes[zero // 16, zero % 16] == 0).all()
    assert (scales[zero // 16, zero % 16] == torch.tensor(1e-6)).all()
    # 0.75 is the largest magnitude of its row, so it becomes 448 (0x7E), and -0.75 -448 (0xFE).
    signs = before[0][1] < 0
    assert torch.equal(codes[constant // 16, constant % 16] == 0xFE, signs)
    assert torch.equal(codes[constant // 16, constant % 16] == 0x7E, ~signs)


def test_main_and_index_heads_go_to_their_own_caches() -> None:
    (q, index_q, cache, index_cache), before = run(22, upcast(draw(22)))
    qkv, *weights, positions, table, mapping, index_mapping, old, index_old = before
    assert not torch.equal(mapping, index_mapping)
    # 16 Q, 2 K, 2 V, 4 index Q, 1 index K
    ours = [0] * 16 + [1] * 2 + [-1] * 2 + [2] * 4 + [3]
    for token in range(0, 33, 4):
        heads = qkv[token].view(25, 16).tolist()
        row = table[positions[token]].tolist()
        wanted = []
        for head, number in zip(heads, ours, strict=True):
            gain = [1 + w for w in weights[number].tolist()]
            normed = [x * g for x, g in zip(rms_normed(head, 1e-6), gain, strict=True)]
            wanted.append(head if number < 0 else turned(normed, row))
        assert all(close(q[token, head], wanted[head]) for head in range(16))
        assert all(close(index_q[token, head], wanted[20 + head]) for head in range(4))
        slot, index_slot = int(mapping[token]), int(index_mapping[token])
        for head in range(2):
            cell = cache[slot // 8, head, slot % 8]
            assert close(cell[:16], wanted[16 + head])
            assert cell[16:].tolist() == wanted[18 + head]
        assert close(index_cache[index_slot // 8, index_slot % 8], wanted[24])
    assert is_untouched(cache.transpose(1, 2), old.transpose(1, 2), mapping)
    assert is_untouched(index_cache, index_old, index_mapping)
