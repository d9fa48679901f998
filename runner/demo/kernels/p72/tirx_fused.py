"""One loop nest per head: each state row is read twice, to find the change and to apply it."""

import functools

import torch
import tvm
from tvm.script import tirx as T


def _build(function):
    """Compile one function for the CPU and return its cheapest entry."""
    module = tvm.IRModule({"main": function})
    return tvm.compile(module, target=tvm.target.Target("llvm"), tir_pipeline="tirx").mod["main"]


@functools.cache
def _compiled(requests, heads, query_heads, dim):
    group = heads // query_heads

    @T.prim_func
    def step(
        q_: T.handle,
        k_: T.handle,
        v_: T.handle,
        state_: T.handle,
        a_log_: T.handle,
        a_: T.handle,
        dt_bias_: T.handle,
        b_: T.handle,
        scale: T.float32,
        output_: T.handle,
        new_state_: T.handle,
    ):
        q = T.match_buffer(q_, (requests, 1, query_heads, dim), "bfloat16")
        k = T.match_buffer(k_, (requests, 1, query_heads, dim), "bfloat16")
        v = T.match_buffer(v_, (requests, 1, heads, dim), "bfloat16")
        state = T.match_buffer(state_, (requests, heads, dim, dim), "float32")
        a_log = T.match_buffer(a_log_, (heads,), "float32")
        a = T.match_buffer(a_, (requests, 1, heads), "bfloat16")
        dt_bias = T.match_buffer(dt_bias_, (heads,), "float32")
        b = T.match_buffer(b_, (requests, 1, heads), "bfloat16")
        output = T.match_buffer(output_, (requests, 1, heads, dim), "bfloat16")
        new_state = T.match_buffer(new_state_, (requests, heads, dim, dim), "float32")
        gate = T.alloc_local((1,), "float32")
        decay = T.alloc_local((1,), "float32")
        share = T.alloc_local((1,), "float32")
        total = T.alloc_local((1,), "float32")
        change = T.alloc_local((1,), "float32")
        for request in T.serial(requests):
            for head in T.serial(heads):
                gate[0] = T.cast(a[request, 0, head], "float32") + dt_bias[head]
                # log(1 + e) loses the low digits of a small e; this quotient gives them back.
                gate[0] = T.exp(gate[0])
                share[0] = T.float32(1) + gate[0]
                gate[0] = T.log(share[0]) * gate[0] / (share[0] - T.float32(1))
                decay[0] = T.exp(-T.exp(a_log[head]) * gate[0])
                share[0] = T.float32(1) / (
                    T.float32(1) + T.exp(-T.cast(b[request, 0, head], "float32"))
                )
                for i in T.serial(dim):
                    total[0] = T.float32(0)
                    for j in T.serial(dim):
                        total[0] = total[0] + (
                            decay[0]
                            * state[request, head, i, j]
                            * T.cast(k[request, 0, head // group, j], "float32")
                        )
                    change[0] = share[0] * (T.cast(v[request, 0, head, i], "float32") - total[0])
                    total[0] = T.float32(0)
                    for j in T.serial(dim):
                        new_state[request, head, i, j] = decay[0] * state[
                            request, head, i, j
                        ] + change[0] * T.cast(k[request, 0, head // group, j], "float32")
                        total[0] = total[0] + (
                            new_state[request, head, i, j]
                            * T.cast(q[request, 0, head // group, j], "float32")
                        )
                    output[request, 0, head, i] = T.cast(total[0] * scale, "bfloat16")

    return _build(step)


def solve(q, k, v, state, a_log, a, dt_bias, b, scale):
    requests, heads, dim, _ = state.shape
    output = torch.empty_like(v)
    new_state = torch.empty_like(state)
    kernel = _compiled(requests, heads, q.shape[2], dim)
    kernel(q, k, v, state, a_log, a, dt_bias, b, scale, output, new_state)
    return output, new_state
