"""The problems that read paged caches and block tables, each against loops over tokens."""

import struct
from typing import Any

import pytest
import torch

from problems.kv_cache import ragged
from tests.problems.loading import draw, load
from tests.problems.test_e4m3 import value


def bfloat16(number: float) -> float:
    return float(torch.tensor(number, dtype=torch.float32).to(torch.bfloat16))


def float32(number: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", number))[0])


def rows_of(cache: torch.Tensor, table: torch.Tensor, lengths: torch.Tensor) -> list[torch.Tensor]:
    """The cache's rows of all tokens, request by request."""
    size = cache.shape[1]
    return [
        cache[int(table[request, position // size]), position % size]
        for request, length in enumerate(lengths.tolist())
        for position in range(length)
    ]


@pytest.mark.parametrize(("n_requests", "n_tokens"), [(1, 1), (1, 50), (3, 41), (8, 8), (12, 300)])
def test_lengths_are_at_least_one_and_sum_to_the_tokens(n_requests: int, n_tokens: int) -> None:
    torch.manual_seed(0)
    lengths = ragged.draw_lengths(n_requests, n_tokens=n_tokens, device="cpu")
    assert lengths.dtype is torch.int32
    assert (len(lengths), int(lengths.sum())) == (n_requests, n_tokens)
    assert lengths.min() >= 1


def test_latents_are_gathered_and_scaled_in_float32() -> None:
    cache, table, lengths, scale = draw(23)
    output = load(23).reference(cache, table, lengths, scale)
    expected = [
        [float32(value(code) * float32(scale)) for code in row.tolist()]
        for row in rows_of(cache, table, lengths)
    ]
    assert torch.equal(output, torch.tensor(expected))


def test_latents_are_about_normal_and_never_nan_whatever_the_scale() -> None:
    for workload in ("smoke", "heldout_2"):
        inputs = draw(23, workload)
        output = load(23).reference(*inputs)
        assert output.dtype is torch.float32
        assert float(output.std()) == pytest.approx(1.0, abs=0.1)
        assert not ((inputs[0] & 127) == 127).any()


def test_packed_entries_expand_to_scaled_codes_and_the_values_behind_them() -> None:
    cache, table, lengths = draw(24)
    output = load(24).reference(cache, table, lengths)
    assert output.shape == (41, 576)
    for token, row in enumerate(rows_of(cache, table, lengths)):
        entry = bytes(row.tolist())
        scales = struct.unpack("<4f", entry[512:528])
        expected = [
            bfloat16(float32(value(code) * scales[j // 128])) for j, code in enumerate(entry[:512])
        ]
        # A bfloat16 is the upper half of a float32.
        words = struct.unpack("<64H", entry[528:])
        expected += struct.unpack("<64f", struct.pack("<64I", *(word << 16 for word in words)))
        assert output[token].tolist() == expected


@pytest.mark.parametrize("workload", ["smoke", "heldout_1", "heldout_2", "heldout_3"])
def test_no_two_requests_share_a_block_and_tables_are_as_wide_as_needed(workload: str) -> None:
    cache, table, lengths = draw(24, workload)
    n_used = [-(-length // cache.shape[1]) for length in lengths.tolist()]
    assert table.shape == (len(lengths), max(n_used))
    used = [int(b) for row, n in zip(table, n_used, strict=True) for b in row[:n]]
    assert len(set(used)) == len(used)
    assert 0 <= min(used) <= max(used) < cache.shape[0]
    assert not any(row[n:].any() for row, n in zip(table, n_used, strict=True))
    output = load(24).reference(cache, table, lengths)
    assert output.shape == (int(lengths.sum()), 576)
    assert torch.isfinite(output).all()


@pytest.mark.parametrize("number", [23, 24])
def test_what_no_request_owns_is_not_read(number: int) -> None:
    cache, table, lengths, *rest = draw(number)
    before = load(number).reference(cache, table, lengths, *rest)
    size, owned = cache.shape[1], torch.zeros(cache.shape[:2], dtype=torch.bool)
    for request, length in enumerate(lengths.tolist()):
        for position in range(length):
            owned[int(table[request, position // size]), position % size] = True
        table[request, -(-length // size) :] = 3
    assert not owned.all()
    cache[~owned] = 0x7F
    assert torch.equal(load(number).reference(cache, table, lengths, *rest), before)


def applied(inputs: list[Any]) -> tuple[list[list[list[int]]], list[list[int]], list[list[int]]]:
    """Apply the staged writes one by one; return tables, counts and slots as lists."""
    *tables, counts, requests, overwrite, ids, n_staged, mapping, starts, positions = (
        item.tolist() for item in inputs
    )
    slots = []
    for group, (factor, size) in enumerate(zip((1, 2, 1), (16, 16, 8), strict=True)):
        for write, request in enumerate(requests):
            end = 0 if overwrite[write] else counts[group][request]
            for staged in ids[group][write][: n_staged[group][write]]:
                for block in range(factor * staged, factor * staged + factor):
                    tables[group][request][end] = block
                    end += 1
            counts[group][request] = end
        line = [-1] * len(positions)
        for row, request in enumerate(mapping):
            for token in range(starts[row], starts[row + 1]):
                place = positions[token]
                line[token] = tables[group][request][place // size] * size + place % size
        slots.append(line)
    return tables, counts, slots


@pytest.mark.parametrize("workload", ["smoke", "heldout_1", "heldout_3"])
def test_staged_writes_apply_in_order_and_positions_follow_them(workload: str) -> None:
    inputs = draw(26, workload)
    tables, counts, slots = applied(inputs)
    outputs = load(26).reference(*inputs)
    for output, expected in zip(outputs, (*tables, counts, slots), strict=True):
        assert output.tolist() == expected
    assert [output.dtype for output in outputs] == [torch.int32] * 4 + [torch.int64]


def test_the_order_of_the_two_halves_decides() -> None:
    inputs, swapped = draw(26), draw(26)
    for place, axis in ((4, 0), (5, 0), (6, 1), (7, 1)):
        swapped[place] = swapped[place].roll(8, dims=axis)
    outputs = zip(load(26).reference(*inputs), load(26).reference(*swapped), strict=True)
    assert not all(torch.equal(*pair) for pair in outputs)


def test_a_second_application_changes_the_counts_again() -> None:
    inputs = draw(26)
    first = load(26).reference(*inputs)[3].clone()
    assert not torch.equal(load(26).reference(*inputs)[3], first)


def test_every_request_is_written_once_in_each_half_and_ids_end_in_minus_one() -> None:
    inputs = draw(26, "heldout_1")
    for half in inputs[4].view(2, -1):
        assert sorted(half.tolist()) == list(range(7))
    beyond = torch.arange(4) >= inputs[7].unsqueeze(-1)
    assert torch.equal(inputs[6] == -1, beyond)
    assert inputs[9].tolist() == sorted(inputs[9].tolist())
    assert inputs[9][0] == 0
    assert inputs[9][-1] < 448


def test_tokens_after_the_last_boundary_have_no_slot() -> None:
    inputs = draw(26)
    end = int(inputs[9][-1])
    slots = load(26).reference(*inputs)[4]
    assert end < slots.shape[1]
    assert (slots[:, end:] == -1).all()
    assert (slots[:, :end] >= 0).all()
