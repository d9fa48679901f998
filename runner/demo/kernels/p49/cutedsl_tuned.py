"""The router is transposed once, four tokens add up vectors of experts, one pass selects."""

import functools

import cutlass.cute as cute
import torch
from cutlass import BFloat16, Float32, Int32, Int64
from cutlass.cute.runtime import make_fake_compact_tensor
from cutlass.cute.typing import AddressSpace


def _fake(dtype, *shape):
    """Describe a contiguous CPU tensor to the compiler."""
    return make_fake_compact_tensor(
        dtype,
        shape,
        stride_order=tuple(reversed(range(len(shape)))),
        memspace=AddressSpace.generic,
    )


GROUPS = 8
CHOSEN_GROUPS = 4
CHOSEN = 8


@cute.jit
def _route(
    x: cute.Tensor,
    w: cute.Tensor,
    transposed: cute.Tensor,
    scores: cute.Tensor,
    bias: cute.Tensor,
    factor: Float32,
    biased: cute.Tensor,
    group_score: cute.Tensor,
    best_scores: cute.Tensor,
    best_experts: cute.Tensor,
    indices: cute.Tensor,
    weights: cute.Tensor,
):
    n_experts = w.shape[0]
    n_members = n_experts // GROUPS
    for k in range(x.shape[1]):
        for expert in range(n_experts):
            transposed[k, expert] = w[expert, k].to(Float32)
    for first in range(0, x.shape[0] - 3, 4):
        dots0 = cute.full((n_experts,), 0.0, Float32)
        dots1 = cute.full((n_experts,), 0.0, Float32)
        dots2 = cute.full((n_experts,), 0.0, Float32)
        dots3 = cute.full((n_experts,), 0.0, Float32)
        for k in range(x.shape[1]):
            row = transposed[k, None].load()
            dots0 = dots0 + row * x[first, k].to(Float32)
            dots1 = dots1 + row * x[first + 1, k].to(Float32)
            dots2 = dots2 + row * x[first + 2, k].to(Float32)
            dots3 = dots3 + row * x[first + 3, k].to(Float32)
        scores[first, None].store(dots0)
        scores[first + 1, None].store(dots1)
        scores[first + 2, None].store(dots2)
        scores[first + 3, None].store(dots3)
    for token in range(x.shape[0] // 4 * 4, x.shape[0]):
        dots = cute.full((n_experts,), 0.0, Float32)
        for k in range(x.shape[1]):
            dots = dots + transposed[k, None].load() * x[token, k].to(Float32)
        scores[token, None].store(dots)
    for token in range(x.shape[0]):
        for expert in range(n_experts):
            dot = scores[token, expert]
            scores[token, expert] = Float32(1.0) / (Float32(1.0) + cute.math.exp(-dot))
    for token in range(scores.shape[0]):
        for group in range(GROUPS):
            best = Float32(float("-inf"))
            second = Float32(float("-inf"))
            for member in range(n_members):
                expert = group * n_members + member
                value = scores[token, expert] + bias[expert].to(Float32)
                biased[expert] = value
                if value > best:
                    second = best
                    best = value
                else:
                    if value > second:
                        second = value
            group_score[group] = best + second
        for place in range(CHOSEN):
            best_scores[place] = Float32(float("-inf"))
            best_experts[place] = Int32(0)
        for group in range(GROUPS):
            rank = Int32(0)
            for other in range(GROUPS):
                if group_score[other] > group_score[group]:
                    rank = rank + 1
            if rank < CHOSEN_GROUPS:
                for member in range(n_members):
                    expert = group * n_members + member
                    value = biased[expert]
                    if value > best_scores[CHOSEN - 1]:
                        place = Int32(CHOSEN - 1)
                        for step in range(CHOSEN - 1):
                            upper = CHOSEN - 2 - step
                            if value > best_scores[upper]:
                                best_scores[upper + 1] = best_scores[upper]
                                best_experts[upper + 1] = best_experts[upper]
                                place = upper
                        best_scores[place] = value
                        best_experts[place] = expert
        total = Float32(1e-20)
        for place in range(CHOSEN):
            expert = best_experts[place]
            indices[token, place] = Int64(expert)
            total = total + scores[token, expert]
        for place in range(CHOSEN):
            weights[token, place] = scores[token, best_experts[place]] / total * factor


@functools.cache
def _compiled(tokens, width, experts):
    return cute.compile(
        _route,
        _fake(BFloat16, tokens, width),
        _fake(BFloat16, experts, width),
        _fake(Float32, width, experts),
        _fake(Float32, tokens, experts),
        _fake(BFloat16, experts),
        Float32(1.0),
        _fake(Float32, experts),
        _fake(Float32, GROUPS),
        _fake(Float32, CHOSEN),
        _fake(Int32, CHOSEN),
        _fake(Int64, tokens, CHOSEN),
        _fake(Float32, tokens, CHOSEN),
        options="--enable-tvm-ffi",
    )


def solve(hidden_states, weight, expert_bias, routed_scaling_factor):
    tokens, width = hidden_states.shape
    experts = weight.shape[0]
    indices = torch.empty(tokens, CHOSEN, dtype=torch.int64)
    weights = torch.empty(tokens, CHOSEN)
    transposed = torch.empty(width, experts)
    scores, biased, groups = torch.empty(tokens, experts), torch.empty(experts), torch.empty(GROUPS)
    best = torch.empty(CHOSEN), torch.empty(CHOSEN, dtype=torch.int32)
    kernel = _compiled(tokens, width, experts)
    kernel(
        hidden_states,
        weight,
        transposed,
        scores,
        expert_bias,
        routed_scaling_factor,
        biased,
        groups,
        *best,
        indices,
        weights,
    )
    return indices, weights
