"""Chains that quantise on the way (56, 57, 58) against loops, and the shortcuts they reject."""

from typing import Any

import pytest
import torch

from tests.problems.loading import draw, load, relative_error, upcast
from tests.problems.quantised import BLOCK, decode, through_fp8, through_nvfp4, with_sizes

# A value on the way that lies at a tie may get another code when sums are ordered otherwise.
CODE_FLIPS = 1e-3


def limit(number: int, output: int = 0) -> float:
    return float(load(number).TOLERANCE.rules[output].limit)


def compress(inputs: list[Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return problem 56's normed rows and its rotary slice, in float64."""
    hidden, down, norm, _, eps = inputs
    rows = through_fp8(hidden.flatten(0, 1), 1) @ through_fp8(down, BLOCK).t()
    kv = rows[:, : len(norm)]
    length = kv.norm(dim=-1, keepdim=True)
    return norm * kv / (length.square() / len(norm) + eps).sqrt(), rows[:, len(norm) :][:, :64]


def test_56_compresses_norms_and_expands_through_fp8() -> None:
    inputs = upcast(draw(56))
    kv_expanded, k_rope = load(56).reference(*inputs)
    normed, rope = compress(inputs)
    expanded = through_fp8(normed, 1) @ through_fp8(inputs[3], BLOCK).t()
    assert kv_expanded.shape == (2, 32, 4, 256)
    assert k_rope.shape == (2, 32, 1, 64)
    assert relative_error(k_rope.flatten(), rope.flatten()) < 1e-12
    assert relative_error(kv_expanded.flatten(), expanded.flatten()) < CODE_FLIPS


def test_56_rejects_a_chain_that_is_not_quantised_again() -> None:
    inputs = upcast(draw(56))
    kv_expanded, _ = load(56).reference(*inputs)
    normed, _ = compress(inputs)
    shortcut = normed @ through_fp8(inputs[3], BLOCK).t()
    assert relative_error(shortcut.flatten(), kv_expanded.flatten()) > limit(56)


def test_56_rejects_an_unquantised_rotary_slice() -> None:
    inputs = upcast(draw(56))
    _, k_rope = load(56).reference(*inputs)
    plain = inputs[0] @ inputs[1][128:192].t()
    assert relative_error(plain.flatten(), k_rope.flatten()) > 2 * limit(56, output=1)


def test_56_an_outlier_in_every_block_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"length": 4, "hidden": 256, "rank": 256, "padded": 384, "n_heads": 1}
    inputs = with_sizes(monkeypatch, 56, "heldout_3", **sizes)
    kv_expanded, k_rope = load(56).reference(*inputs)
    assert (kv_expanded == 0).all()
    assert (k_rope != 0).all()


def test_56_padding_columns_reach_the_outputs_through_no_more_than_the_scales() -> None:
    inputs = draw(56)
    right = load(56).reference(*inputs)
    # Rows 192 to 255 are padding, in the same tiles as the rotary rows.
    inputs[1][192:] = inputs[1][192:].flip(0)
    assert all(map(torch.equal, load(56).reference(*inputs), right))


def rotate(head: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    half = head.shape[-1] // 2
    turned = torch.empty_like(head)
    for i in range(half):
        a, b = head[:, i], head[:, i + half]
        turned[:, i] = a * cos[:, i] - b * sin[:, i]
        turned[:, i + half] = b * cos[:, i + half] + a * sin[:, i + half]
    return turned


def attention_57(inputs: list[Any], *, rotary: bool = True) -> torch.Tensor:
    """Return what the heads of problem 57 gather, [batch * length, heads * width]."""
    hidden, cos, sin = inputs[:3]
    batch, length, width = cos.shape
    weights = [decode(*inputs[i : i + 3]) for i in (3, 6, 9)]
    rows = through_nvfp4(hidden)
    gathered = torch.empty(batch, length, weights[0].shape[0], dtype=torch.float64)
    group = weights[0].shape[0] // weights[1].shape[0]
    for b in range(batch):
        q, k, v = (rows[b] @ weight.t() for weight in weights)
        for head in range(weights[0].shape[0] // width):
            mine = slice(head * width, (head + 1) * width)
            shared = slice(head // group * width, (head // group + 1) * width)
            q_head, k_head = q[:, mine], k[:, shared]
            if rotary:
                q_head, k_head = rotate(q_head, cos[b], sin[b]), rotate(k_head, cos[b], sin[b])
            for i in range(length):
                scores = k_head[: i + 1] @ q_head[i] / width**0.5
                gathered[b, i, mine] = torch.softmax(scores, 0) @ v[: i + 1, shared]
    return gathered.flatten(0, 1)


def test_57_attends_and_projects_through_nvfp4() -> None:
    inputs = upcast(draw(57))
    output = load(57).reference(*inputs)
    expected = through_nvfp4(attention_57(inputs)) @ decode(*inputs[12:]).t()
    assert relative_error(output.flatten(0, 1), expected) < CODE_FLIPS


def test_57_rejects_shortcuts() -> None:
    inputs = upcast(draw(57))
    output = load(57).reference(*inputs).flatten(0, 1)
    o_weight = decode(*inputs[12:]).t()
    not_requantised = attention_57(inputs) @ o_weight
    not_rotated = through_nvfp4(attention_57(inputs, rotary=False)) @ o_weight
    assert relative_error(not_requantised, output) > limit(57)
    assert relative_error(not_rotated, output) > 5 * limit(57)


def test_57_sequences_start_at_their_own_offsets() -> None:
    inputs = draw(57)
    right = load(57).reference(*inputs)
    assert not torch.equal(inputs[1][0], inputs[1][1])
    assert torch.equal(inputs[1][..., :16], inputs[1][..., 16:])
    # Cosines and sines of other angles must change the answer; of one offset for all they would
    # not, since only differences of angles count.
    inputs[1:3] = [angles.flip(1) for angles in inputs[1:3]]
    assert relative_error(load(57).reference(*inputs), right) > 2 * limit(57)


def attention_58(inputs: list[Any], quantised: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Return problem 58's outputs in float64, quantising the operands named, of "qkpv"."""

    def through(name: str, tensor: torch.Tensor) -> torch.Tensor:
        return through_nvfp4(tensor) if name in quantised else tensor

    q, k = through("q", inputs[0]), through("k", inputs[1])
    n_heads, group = q.shape[1], q.shape[1] // k.shape[1]
    weights = torch.zeros(*q.shape[:3], q.shape[2], dtype=torch.float64)
    for head in range(n_heads):
        for i in range(q.shape[2]):
            logits = (k[:, head // group, : i + 1] @ q[:, head, i, :, None])[..., 0]
            weights[:, head, i, : i + 1] = torch.softmax(logits / q.shape[3] ** 0.5, -1)
    p, v = through("p", weights), through("v", inputs[2].transpose(2, 3)).transpose(2, 3)
    outputs = [p[:, head] @ v[:, head // group] for head in range(n_heads)]
    return torch.stack(outputs, dim=1), weights


def test_58_attends_with_four_nvfp4_operands() -> None:
    inputs = upcast(draw(58))
    attn_output, attn_weights = load(58).reference(*inputs)
    output, weights = attention_58(inputs, "qkpv")
    assert relative_error(attn_weights, weights) < 1e-12
    assert relative_error(attn_output, output) < CODE_FLIPS


@pytest.mark.parametrize("quantised", ["qkv", "qk"])
def test_58_rejects_an_output_of_unquantised_operands(quantised: str) -> None:
    inputs = upcast(draw(58))
    attn_output, _ = load(58).reference(*inputs)
    assert relative_error(attention_58(inputs, quantised)[0], attn_output) > limit(58)


def test_58_rejects_weights_of_unquantised_operands() -> None:
    inputs = upcast(draw(58))
    _, attn_weights = load(58).reference(*inputs)
    assert relative_error(attention_58(inputs, "")[1], attn_weights) > 2 * limit(58, output=1)


def test_58_the_first_key_takes_all_of_the_first_row() -> None:
    _, attn_weights = load(58).reference(*draw(58))
    assert (attn_weights[:, :, 0, 0] == 1).all()
    assert (attn_weights.triu(1) == 0).all()


def test_58_rejects_values_in_blocks_along_their_width() -> None:
    inputs = upcast(draw(58))
    attn_output, attn_weights = load(58).reference(*inputs)
    v = through_nvfp4(inputs[2]).repeat_interleave(5, dim=1)
    assert relative_error(through_nvfp4(attn_weights) @ v, attn_output) > limit(58)


@pytest.mark.parametrize("number", [52, 53, 54, 56, 58])
def test_every_workload_has_sizes_that_fit_together(number: int) -> None:
    for workload in load(number).WORKLOADS:
        outputs = load(number).reference(*load(number).make_inputs(workload, "meta"))
        assert all(tensor.numel() > 0 for tensor in outputs)
