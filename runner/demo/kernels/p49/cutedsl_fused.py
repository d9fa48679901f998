"""One kernel: a dot product per token and expert, then the selection."""

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
    scores: cute.Tensor,
    bias: cute.Tensor,
    factor: Float32,
    biased: cute.Tensor,
    group_score: cute.Tensor,
    indices: cute.Tensor,
    weights: cute.Tensor,
):
    n_experts = w.shape[0]
    n_members = n_experts // GROUPS
    for token in range(x.shape[0]):
        for expert in range(n_experts):
            dot = Float32(0.0)
            for k in range(x.shape[1]):
                dot = dot + x[token, k].to(Float32) * w[expert, k].to(Float32)
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
        for group in range(GROUPS):
            rank = Int32(0)
            for other in range(GROUPS):
                if group_score[other] > group_score[group]:
                    rank = rank + 1
            if rank >= CHOSEN_GROUPS:
                for member in range(n_members):
                    biased[group * n_members + member] = Float32(float("-inf"))
        total = Float32(1e-20)
        for place in range(CHOSEN):
            top = Float32(float("-inf"))
            arg = Int32(0)
            for expert in range(n_experts):
                if biased[expert] > top:
                    top = biased[expert]
                    arg = expert
            biased[arg] = Float32(float("-inf"))
            indices[token, place] = Int64(arg)
            total = total + scores[token, arg]
        for place in range(CHOSEN):
            chosen = scores[token, Int32(indices[token, place])]
            weights[token, place] = chosen / total * factor


@functools.cache
def _compiled(tokens, width, experts):
    return cute.compile(
        _route,
        _fake(BFloat16, tokens, width),
        _fake(BFloat16, experts, width),
        _fake(Float32, tokens, experts),
        _fake(BFloat16, experts),
        Float32(1.0),
        _fake(Float32, experts),
        _fake(Float32, GROUPS),
        _fake(Int64, tokens, CHOSEN),
        _fake(Float32, tokens, CHOSEN),
        options="--enable-tvm-ffi",
    )


def solve(hidden_states, weight, expert_bias, routed_scaling_factor):
    tokens, width = hidden_states.shape
    experts = weight.shape[0]
    indices = torch.empty(tokens, CHOSEN, dtype=torch.int64)
    weights = torch.empty(tokens, CHOSEN)
    scores, biased, groups = torch.empty(tokens, experts), torch.empty(experts), torch.empty(GROUPS)
    kernel = _compiled(tokens, width, experts)
    kernel(
        hidden_states,
        weight,
        scores,
        expert_bias,
        routed_scaling_factor,
        biased,
        groups,
        indices,
        weights,
    )
    return indices, weights
