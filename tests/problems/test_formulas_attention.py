"""Model blocks of attention against second formulations: autograd and textbook loops."""

import math
from typing import Any

import pytest
import torch

from tests.problems.loading import draw, load, relative_error, upcast


def half_turn(x: torch.Tensor, angle_cos: torch.Tensor, angle_sin: torch.Tensor) -> torch.Tensor:
    """Turn element i with i + dim / 2, as a product of complex numbers."""
    half = x.shape[-1] // 2
    number = torch.complex(x[..., :half], x[..., half:])
    turned = number * torch.complex(angle_cos[..., :half], angle_sin[..., :half])
    return torch.cat((turned.real, turned.imag), dim=-1)


def gemma_layer(leaves: list[torch.Tensor], fixed: list[Any]) -> torch.Tensor:
    """Return the layer's output, head after head, for autograd to differentiate."""
    x, wq, wk, wv, wo, q_gain, k_gain = leaves
    cos, sin, scaling, softcap, eps = fixed
    dim = q_gain.shape[0]
    n_heads, n_kv_heads = wq.shape[0] // dim, wk.shape[0] // dim
    future = torch.triu(torch.full((x.shape[1],) * 2, -math.inf, dtype=x.dtype), diagonal=1)
    heads = []
    for head in range(n_heads):
        group = head // (n_heads // n_kv_heads)
        q = x @ wq[head * dim : (head + 1) * dim].t()
        k, v = (x @ w[group * dim : (group + 1) * dim].t() for w in (wk, wv))
        q = torch.nn.functional.rms_norm(q, (dim,), 1 + q_gain, eps)
        k = torch.nn.functional.rms_norm(k, (dim,), 1 + k_gain, eps)
        logits = half_turn(q, cos, sin) @ half_turn(k, cos, sin).mT * scaling
        heads.append(torch.softmax(softcap * torch.tanh(logits / softcap) + future, dim=-1) @ v)
    return torch.cat(heads, dim=-1) @ wo.t()


@pytest.mark.parametrize("workload", ["smoke", "smoke_2"])
def test_gradients_are_those_of_autograd(workload: str) -> None:
    grad, x, cos, sin, *rest = upcast(draw(10, workload))
    weights, scalars = rest[:6], rest[6:]
    leaves = [tensor.clone().requires_grad_() for tensor in (x, *weights)]
    gemma_layer(leaves, [cos, sin, *scalars]).backward(grad)
    found = load(10).reference(grad, x, cos, sin, *weights, *scalars)
    assert len(found) == len(leaves) == 7
    for gradient, leaf in zip(found, leaves, strict=True):
        assert leaf.grad is not None
        assert gradient.shape == leaf.shape
        assert relative_error(gradient, leaf.grad) < 1e-13


def test_a_small_cap_is_felt_and_a_large_one_hardly() -> None:
    for workload, least, most in (("smoke", 0, 0.02), ("smoke_2", 0.05, 2)):
        inputs = upcast(draw(10, workload))
        right = load(10).reference(*inputs)
        inputs[11] = 1e6
        uncapped = load(10).reference(*inputs)
        error = relative_error(uncapped[1], right[1])
        assert least < error < most


def test_a_gain_of_the_weight_alone_would_be_far_off() -> None:
    inputs = upcast(draw(10))
    right = load(10).reference(*inputs)
    inputs[8] = inputs[8] - 1
    assert relative_error(load(10).reference(*inputs)[1], right[1]) > 0.5


def test_rotation_tables_are_read_at_each_place_of_the_batch() -> None:
    inputs = upcast(draw(10))
    before = load(10).reference(*inputs)[0]
    inputs[2][1], inputs[3][1] = 1, 0
    after = load(10).reference(*inputs)[0]
    assert torch.equal(before[0], after[0])
    assert not torch.allclose(before[1], after[1])


def test_each_image_attends_to_all_of_itself_and_to_nothing_else() -> None:
    inputs = upcast(draw(11))
    x, ends, wqkv, bqkv, wo, bo, cos, sin = inputs
    output = load(11).reference(*inputs)
    first = 0
    for end in ends.tolist():
        own = x[first:end] @ wqkv.t() + bqkv
        heads = []
        for head in range(4):
            q, k, v = (own[:, part * 96 + head * 24 :][:, :24] for part in range(3))
            c, s = cos[first:end, head], sin[first:end, head]
            q, k = half_turn(q, c, s), half_turn(k, c, s)
            attend = torch.nn.functional.scaled_dot_product_attention
            heads.append(attend(q[None], k[None], v[None])[0])
        expected = torch.cat(heads, dim=-1) @ wo.t() + bo
        torch.testing.assert_close(output[first:end], expected, rtol=1e-11, atol=1e-12)
        first = end
    assert first == len(x)


def test_positions_restart_with_each_image() -> None:
    module, inputs = load(11), draw(11)
    starts = [0, *inputs[1].tolist()[:-1]]
    assert inputs[1].dtype is torch.int64
    for table, at_zero in ((inputs[6], 1), (inputs[7], 0)):
        assert (table[starts] == at_zero).all()
        assert torch.equal(table[starts[1] + 3], table[3])
        assert (table == table[:, :1]).all()
    assert sum(module.SEQ_SPLITS) == 7_168
    # sum of squares, by the specification
    assert sum(n * n for n in module.SEQ_SPLITS) == 2_620_654


def test_a_neighbouring_image_does_not_leak() -> None:
    inputs = draw(11)
    before = load(11).reference(*inputs)
    inputs[0][12:16] = 100.0
    after = load(11).reference(*inputs)
    assert torch.equal(before[:12], after[:12])
    assert torch.equal(before[16:], after[16:])


def audio_frame(inputs: list[Any], batch: int, frame: int) -> torch.Tensor:
    """Return one frame's output [heads, dim], key after key."""
    x, mask, wq, wk, wv, wpos, per_dim, timescales, cap = inputs
    dim = len(per_dim)
    softplus = torch.log1p(torch.exp(per_dim))
    q = (wq @ x[batch, frame]).view(-1, dim) * softplus / (math.sqrt(dim) * math.log(2))
    logits, values = [], []
    for key in range(max(0, frame - 12), frame + 1):
        if mask[batch, key]:
            continue
        angle = (frame - key) * timescales
        relative = wpos @ torch.cat((torch.sin(angle), torch.cos(angle)))
        both = (wk @ x[batch, key] + relative).view(-1, dim)
        logits.append(cap * torch.tanh((q * both).sum(dim=1) / cap))
        values.append((wv @ x[batch, key]).view(-1, dim))
    weights = torch.softmax(torch.stack(logits), dim=0)
    return (weights.unsqueeze(-1) * torch.stack(values)).sum(dim=0)


@pytest.mark.parametrize("workload", ["smoke", "smoke_2"])
def test_audio_frames_attend_to_themselves_and_twelve_before(workload: str) -> None:
    inputs = upcast(draw(12, workload))
    inputs[1][1, 140:] = True
    output = load(12).reference(*inputs)
    assert output.shape == (2, 149, 4, 16)
    for batch in range(2):
        for frame in (0, 1, 11, 12, 13, 25, 139, 140, 147, 148):
            expected = audio_frame(inputs, batch, frame)
            torch.testing.assert_close(output[batch, frame], expected, rtol=1e-11, atol=1e-12)


def test_padded_keys_may_hold_any_finite_number() -> None:
    inputs = draw(12)
    inputs[1][:, 138:] = True
    before = load(12).reference(*inputs)
    # Queries at padded frames change with their input; those before must not.
    inputs[0][:, 138:] = 1e4
    after = load(12).reference(*inputs)
    assert torch.equal(before[:, :138], after[:, :138])


@pytest.mark.parametrize("workload", ["smoke", "heldout_2"])
def test_padding_is_a_tail_that_leaves_every_window_a_key(workload: str) -> None:
    for seed in range(4):
        mask = draw(12, workload, seed=seed)[1]
        n_valid = (~mask).sum(dim=1)
        assert (n_valid >= max(1, mask.shape[1] - 12)).all()
        assert torch.equal(mask, torch.arange(mask.shape[1]) >= n_valid.unsqueeze(1))


def fibo_tokens(inputs: list[Any], dim: int) -> torch.Tensor:
    """Return the block's output, token by token and head by head."""
    x, time, text, *rest = inputs
    layers = {
        name: (rest[2 * i], rest[2 * i + 1])
        for i, name in enumerate(("ada", "q", "k", "v", "k_text", "v_text", "out"))
    }
    places, tables, joint = rest[14:17], rest[17:23], rest[23]

    def project(name: str, vector: torch.Tensor) -> torch.Tensor:
        return layers[name][0] @ vector + layers[name][1]

    def norm(vector: torch.Tensor) -> torch.Tensor:
        return (vector - vector.mean()) / torch.sqrt(vector.var(correction=0) + 1e-6)

    def turned(vector: torch.Tensor, token: int) -> torch.Tensor:
        heads = vector.clone().view(-1, dim)
        for axis, place in enumerate(places):
            cos, sin = (table[int(place[token])] for table in tables[2 * axis : 2 * axis + 2])
            for i in range(len(cos)):
                low = 2 * (axis * len(cos) + i)
                a, b = heads[:, low].clone(), heads[:, low + 1].clone()
                heads[:, low], heads[:, low + 1] = a * cos[i] - b * sin[i], a * sin[i] + b * cos[i]
        return heads

    outputs = torch.empty_like(x)
    for batch in range(len(x)):
        silu = time[batch] / (1 + torch.exp(-time[batch]))
        shift, scale, gate = project("ada", silu).view(6, -1)[:3]
        image = [norm(token) * (1 + scale) + shift for token in x[batch]]
        keys = [turned(project("k", token), t) for t, token in enumerate(image)]
        values = [project("v", token).view(-1, dim) for token in image]
        for token in text[batch] if joint else ():
            keys.append(project("k_text", norm(token)).view(-1, dim))
            values.append(project("v_text", norm(token)).view(-1, dim))
        k, v = torch.stack(keys), torch.stack(values)
        for t, token in enumerate(image):
            logits = (k * turned(project("q", token), t)).sum(dim=-1) / math.sqrt(dim)
            attended = (torch.softmax(logits, dim=0).unsqueeze(-1) * v).sum(dim=0).flatten()
            outputs[batch, t] = x[batch, t] + gate * project("out", attended)
    return outputs


@pytest.mark.parametrize("workload", ["smoke", "smoke_2"])
def test_image_tokens_attend_to_the_image_and_in_a_joint_block_to_the_text(workload: str) -> None:
    inputs = upcast(draw(13, workload))
    output = load(13).reference(*inputs)
    torch.testing.assert_close(output, fibo_tokens(inputs, dim=32), rtol=1e-11, atol=1e-11)


def test_the_unused_modulation_and_unused_table_rows_may_hold_anything() -> None:
    inputs = draw(13)
    before = load(13).reference(*inputs)
    for half in inputs[3:5]:
        half[len(half) // 2 :] = math.nan
    for table in inputs[20:26]:
        table[4:] = math.nan
    assert torch.equal(load(13).reference(*inputs), before)


def test_without_the_joint_block_the_text_does_not_matter() -> None:
    inputs = draw(13, "smoke_2")
    before = load(13).reference(*inputs)
    inputs[2].fill_(math.nan)
    assert torch.equal(load(13).reference(*inputs), before)


def test_grid_positions_count_columns_fastest() -> None:
    # Token 27 of a 2x4x4 grid: 27 = 1 * 16 + 2 * 4 + 3.
    assert [int(places[27]) for places in draw(13)[17:20]] == [1, 2, 3]
