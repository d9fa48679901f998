"""As the fused passes, but with four independent sums, so that additions overlap."""

import functools

import torch
import tvm
from tvm.script import tirx as T


def _build(function):
    """Compile one function for the CPU and return its cheapest entry."""
    module = tvm.IRModule({"main": function})
    return tvm.compile(module, target=tvm.target.Target("llvm"), tir_pipeline="tirx").mod["main"]


@functools.cache
def _compiled(rows, width):
    @T.prim_func
    def rmsnorm(x_: T.handle, weight_: T.handle, y_: T.handle):
        x = T.match_buffer(x_, (rows, width), "bfloat16")
        weight = T.match_buffer(weight_, (width,), "bfloat16")
        y = T.match_buffer(y_, (rows, width), "bfloat16")
        for row in T.serial(rows):
            s0: T.float32 = 0.0
            s1: T.float32 = 0.0
            s2: T.float32 = 0.0
            s3: T.float32 = 0.0
            for step in T.serial(width // 4):
                a: T.float32 = T.cast(x[row, step * 4], "float32")
                b: T.float32 = T.cast(x[row, step * 4 + 1], "float32")
                c: T.float32 = T.cast(x[row, step * 4 + 2], "float32")
                d: T.float32 = T.cast(x[row, step * 4 + 3], "float32")
                s0 = s0 + a * a
                s1 = s1 + b * b
                s2 = s2 + c * c
                s3 = s3 + d * d
            mean: T.float32 = ((s0 + s1) + (s2 + s3)) / T.float32(width)
            inverse: T.float32 = T.rsqrt(mean + T.float32(1e-6))
            for column in T.serial(width):
                y[row, column] = T.cast(
                    T.cast(x[row, column], "float32") * inverse * T.cast(weight[column], "float32"),
                    "bfloat16",
                )

    return _build(rmsnorm)


def solve(hidden_states, weight):
    y = torch.empty_like(hidden_states)
    _compiled(*hidden_states.shape)(hidden_states, weight, y)
    return y
