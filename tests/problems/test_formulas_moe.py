"""Mixtures of experts, forward: each reference against loops over tokens in float64."""

import math
from typing import Any

import pytest
import torch

from tests.problems.loading import draw, load, relative_error, upcast


def silu(x: torch.Tensor) -> torch.Tensor:
    return x / (1 + torch.exp(-x))


def best(scores: list[float], k: int, among: list[int] | None = None) -> list[int]:
    """The k places of the largest scores, best first."""
    return sorted(among or range(len(scores)), key=lambda i: -scores[i])[:k]


def spread(scales: torch.Tensor) -> torch.Tensor:
    """Each scale repeated over its tile of 128 x 128."""
    return torch.kron(scales, torch.ones(128, 128, dtype=torch.float64))


def chosen_by_groups(scores: list[float], biased: list[float]) -> dict[int, float]:
    size = len(biased) // 8
    group = [sum(sorted(biased[g * size : (g + 1) * size])[-2:]) for g in range(8)]
    open_groups = best(group, 4)
    admissible = [e for e in range(len(biased)) if e // size in open_groups]
    chosen = best(biased, 8, admissible)
    total = sum(scores[e] for e in chosen)
    return {e: 2.5 * scores[e] / total for e in chosen}


@pytest.mark.parametrize("offset", [0, 4, 6, 28])
def test_resident_experts_add_their_share_of_the_grouped_choice(offset: int) -> None:
    logits, bias, x, x_scale, w1, s1, w2, s2, _, factor = inputs = upcast(draw(44))
    inputs[8] = offset
    output = load(44).reference(*inputs)
    first = [w1[e].double() * spread(s1[e]) for e in range(4)]
    second = [w2[e].double() * spread(s2[e]) for e in range(4)]
    assert factor == 2.5
    for token in range(64):
        scores = [1 / (1 + math.exp(-z)) for z in logits[token].tolist()]
        biased = [s + b for s, b in zip(scores, bias.tolist(), strict=True)]
        blocks = [x[token, 128 * j : 128 * j + 128].double() * x_scale[j, token] for j in (0, 1)]
        expected = torch.zeros(256, dtype=torch.float64)
        for e, weight in chosen_by_groups(scores, biased).items():
            if offset <= e < offset + 4:
                both = first[e - offset] @ torch.cat(blocks)
                expected += weight * (second[e - offset] @ (silu(both[128:]) * both[:128]))
        torch.testing.assert_close(output[token], expected)


def test_a_token_without_a_resident_expert_gets_exact_zeros() -> None:
    inputs = draw(44)
    inputs[8] = 1_000
    assert (load(44).reference(*inputs) == 0).all()
    served = (load(44).reference(*draw(44)) != 0).any(dim=1).sum()
    assert 0 < served < 64


def test_a_shift_of_all_biases_changes_no_grouped_choice() -> None:
    inputs = upcast(draw(44))
    expected = load(44).reference(*inputs)
    inputs[1] = inputs[1] - 4
    torch.testing.assert_close(load(44).reference(*inputs), expected)


def test_a_gate_far_below_zero_shuts_instead_of_giving_nan() -> None:
    inputs = draw(44)
    inputs[3] *= 1e4
    output = load(44).reference(*inputs)
    assert torch.isfinite(output).all()
    assert (output != 0).any()


def test_up_comes_before_gate() -> None:
    inputs = draw(44)
    expected = load(44).reference(*inputs)
    inputs[4], inputs[5] = inputs[4].roll(128, 1), inputs[5].roll(1, 1)
    assert relative_error(load(44).reference(*inputs), expected) > 0.3


def by_capacity(inputs: list[Any], capacity: int) -> torch.Tensor:
    x, selected, weights, gate, up, down = inputs
    output, load_of = torch.zeros_like(x), [0] * gate.shape[0]
    for token, row in enumerate(selected.tolist()):
        for slot, e in enumerate(row):
            if load_of[e] < capacity:
                load_of[e] += 1
                inner = silu(x[token] @ gate[e]) * (x[token] @ up[e])
                output[token] += weights[token, slot] * (inner @ down[e])
    return output


def test_an_expert_takes_the_first_assignments_up_to_its_capacity() -> None:
    # 128 * 4 / 16 * 1.25 = 40
    inputs = upcast(draw(45))
    torch.testing.assert_close(load(45).reference(*inputs), by_capacity(inputs, 40))


def test_an_expert_has_room_for_one_at_least(monkeypatch: pytest.MonkeyPatch) -> None:
    # int(12 * 8 / 160 * 1.25) = 0
    module = load(45)
    monkeypatch.setitem(module.WORKLOADS, "tiny", module.Sizes(12, width=16, inner=8))
    inputs = upcast(draw(45, "tiny"))
    torch.testing.assert_close(module.reference(*inputs), by_capacity(inputs, 1))


def test_room_for_all_would_be_far_off() -> None:
    inputs = upcast(draw(45))
    assert relative_error(by_capacity(inputs, 10**9), load(45).reference(*inputs)) > 0.1


@pytest.mark.parametrize(
    ("workload", "capacity"),
    [("full", 512), ("heldout_1", 62), ("heldout_2", 1), ("heldout_3", 320)],
)
def test_capacities_are_the_published_ones(workload: str, capacity: int) -> None:
    sizes = load(45).WORKLOADS[workload]
    selected = torch.arange(sizes.n_tokens * sizes.n_chosen).view(-1, sizes.n_chosen)
    weights = torch.ones(selected.shape)
    tokens, factors = load(45)._fill_places(selected % sizes.n_experts, weights, sizes.n_experts)
    assert tokens.shape == factors.shape == (sizes.n_experts, capacity)


def test_the_chunked_dispatch_anchor_is_the_upcast_reference() -> None:
    inputs = draw(45)
    expected = load(45).reference(*upcast(inputs))
    torch.testing.assert_close(load(45).anchor(*inputs), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("top_k", "norm_min"), [(4, 1e-10), (8, 1e-10), (4, 0.9)])
def test_ernie_adds_chosen_experts_and_the_shared_one(top_k: int, norm_min: float) -> None:
    x, router, bias, gate, up, down, shared_gate, shared_up, shared_down, _ = upcast(draw(47))
    experts = gate, up, down, shared_gate, shared_up, shared_down
    output, logits = load(47).reference(x, router, bias, *experts, norm_min, top_k=top_k)
    assert output.shape == (4, 16, 128)
    for token, row in enumerate(x.view(64, 128)):
        torch.testing.assert_close(logits[token], torch.stack([row @ w for w in router]))
        power = [math.exp(z) for z in logits[token].tolist()]
        probs = [p / sum(power) for p in power]
        biased = [p + b for p, b in zip(probs, bias[0].tolist(), strict=True)]
        chosen = best(biased, top_k)
        total = max(sum(probs[e] for e in chosen), norm_min)
        expected = shared_down @ (silu(shared_gate @ row) * (shared_up @ row))
        for e in chosen:
            expected += probs[e] / total * (down[e] @ (silu(gate[e] @ row) * (up[e] @ row)))
        torch.testing.assert_close(output[token // 16, token % 16], expected)


def test_an_expert_that_nobody_chose_is_never_read() -> None:
    inputs = draw(47)
    inputs[2][0, 5] = -100.0
    expected, _ = load(47).reference(*inputs)
    inputs[3][5] = inputs[4][5] = inputs[5][5] = math.nan
    assert torch.equal(load(47).reference(*inputs)[0], expected)


def test_qwen_adds_ten_experts_and_the_gated_shared_one() -> None:
    inputs = upcast(draw(48))
    x, router, gate, up, down, shared_gate, shared_up, shared_down, shared_router = inputs
    output, logits = load(48).reference(*inputs)
    assert output.shape == (4, 24, 128)
    for token, row in enumerate(x.view(96, 128)):
        torch.testing.assert_close(logits[token], torch.stack([row @ w for w in router]))
        power = [math.exp(z) for z in logits[token].tolist()]
        chosen = best(power, 10)
        share = 1 / (1 + math.exp(-float(shared_router[0] @ row)))
        expected = share * (shared_down @ (silu(shared_gate @ row) * (shared_up @ row)))
        for e in chosen:
            weight = power[e] / sum(power[i] for i in chosen)
            expected += weight * (down[e] @ (silu(gate[e] @ row) * (up[e] @ row)))
        torch.testing.assert_close(output[token // 24, token % 24], expected)


@pytest.mark.parametrize("workload", ["smoke", "smoke_2"])
def test_gpt_oss_experts_clamp_interleaved_halves_and_weight_by_expert(workload: str) -> None:
    x, indices, weights, both, both_bias, down, down_bias = upcast(draw(51, workload))
    output = load(51).reference(x, indices, weights, both, both_bias, down, down_bias)
    for token, row in enumerate(x):
        expected = torch.zeros(96, dtype=torch.float64)
        for e in indices[token].tolist():
            y = (row @ both[e] + both_bias[e]).tolist()
            inner = []
            for gate, up in zip(y[::2], y[1::2], strict=True):
                limited = min(gate, 7.0)
                swish = limited / (1 + math.exp(-1.702 * limited))
                inner.append((max(-7.0, min(up, 7.0)) + 1) * swish)
            made = torch.tensor(inner, dtype=torch.float64) @ down[e] + down_bias[e]
            expected += weights[token, e] * made
        torch.testing.assert_close(output[token], expected)


def test_leaving_out_the_clamps_shows_where_the_tokens_are_large(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    small, large = draw(51), draw(51, "smoke_2")
    expected = load(51).reference(*small), load(51).reference(*large)
    monkeypatch.setattr(load(51), "GLU_LIMIT", math.inf)
    assert relative_error(load(51).reference(*small), expected[0]) < 0.1
    assert relative_error(load(51).reference(*large), expected[1]) > 0.3
