"""One kernel: the router is transposed once, then each token adds up vectors of experts."""

import functools

import torch
import tvm
from tvm.script import tirx as T

GROUPS = 8
CHOSEN_GROUPS = 4
CHOSEN = 8


def _build(function):
    """Compile one function for the CPU's own vector width and return its cheapest entry."""
    widths = {"AVX512": "x86-64-v4", "AVX2": "x86-64-v3"}
    found = widths.get(torch.backends.cpu.get_cpu_capability())
    target = tvm.target.Target({"kind": "llvm", "mcpu": found} if found else "llvm")
    module = tvm.IRModule({"main": function})
    return tvm.compile(module, target=target, tir_pipeline="tirx").mod["main"]


@functools.cache
def _compiled(tokens, width, experts):
    members = experts // GROUPS

    @T.prim_func
    def route(
        x_: T.handle,
        w_: T.handle,
        bias_: T.handle,
        factor: T.float32,
        scores_: T.handle,
        transposed_: T.handle,
        indices_: T.handle,
        weights_: T.handle,
    ):
        x = T.match_buffer(x_, (tokens, width), "bfloat16")
        w = T.match_buffer(w_, (experts, width), "bfloat16")
        bias = T.match_buffer(bias_, (experts,), "bfloat16")
        scores = T.match_buffer(scores_, (tokens, experts), "float32")
        transposed = T.match_buffer(transposed_, (width, experts), "float32")
        indices = T.match_buffer(indices_, (tokens, CHOSEN), "int64")
        weights = T.match_buffer(weights_, (tokens, CHOSEN), "float32")
        biased = T.alloc_local((experts,), "float32")
        group_score = T.alloc_local((GROUPS,), "float32")
        best = T.alloc_local((1,), "float32")
        second = T.alloc_local((1,), "float32")
        rank = T.alloc_local((1,), "int32")
        arg = T.alloc_local((1,), "int32")
        dots = T.alloc_local((experts,), "float32")
        for k in T.serial(width):
            for expert in T.serial(experts):
                transposed[k, expert] = T.cast(w[expert, k], "float32")
        for token in T.serial(tokens):
            for expert in T.vectorized(experts):
                dots[expert] = T.float32(0)
            for k in T.serial(width):
                for expert in T.vectorized(experts):
                    dots[expert] = (
                        dots[expert] + T.cast(x[token, k], "float32") * transposed[k, expert]
                    )
            for expert in T.serial(experts):
                scores[token, expert] = T.float32(1) / (T.float32(1) + T.exp(-dots[expert]))
            for group in T.serial(GROUPS):
                best[0] = T.float32("-inf")
                second[0] = T.float32("-inf")
                for member in T.serial(members):
                    expert: T.let = group * members + member
                    biased[expert] = scores[token, expert] + T.cast(bias[expert], "float32")
                    if biased[expert] > best[0]:
                        second[0] = best[0]
                        best[0] = biased[expert]
                    elif biased[expert] > second[0]:
                        second[0] = biased[expert]
                group_score[group] = best[0] + second[0]
            for group in T.serial(GROUPS):
                rank[0] = 0
                for other in T.serial(GROUPS):
                    if group_score[other] > group_score[group]:
                        rank[0] = rank[0] + 1
                if rank[0] >= CHOSEN_GROUPS:
                    for member in T.serial(members):
                        biased[group * members + member] = T.float32("-inf")
            second[0] = T.float32(1e-20)
            for place in T.serial(CHOSEN):
                best[0] = T.float32("-inf")
                arg[0] = 0
                for expert in T.serial(experts):
                    if biased[expert] > best[0]:
                        best[0] = biased[expert]
                        arg[0] = expert
                biased[arg[0]] = T.float32("-inf")
                indices[token, place] = T.cast(arg[0], "int64")
                second[0] = second[0] + scores[token, arg[0]]
            for place in T.serial(CHOSEN):
                weights[token, place] = (
                    scores[token, T.cast(indices[token, place], "int32")] / second[0] * factor
                )

    return _build(route)


def solve(hidden_states, weight, expert_bias, routed_scaling_factor):
    tokens, width = hidden_states.shape
    experts = weight.shape[0]
    indices = torch.empty(tokens, CHOSEN, dtype=torch.int64)
    weights = torch.empty(tokens, CHOSEN)
    scratch = torch.empty(tokens, experts), torch.empty(width, experts)
    kernel = _compiled(tokens, width, experts)
    kernel(hidden_states, weight, expert_bias, routed_scaling_factor, *scratch, indices, weights)
    return indices, weights
