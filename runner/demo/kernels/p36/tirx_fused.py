"""Two passes over each row: one running sum of squares, then the scaling."""

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
        total = T.alloc_local((1,), "float32")
        for row in T.serial(rows):
            total[0] = T.float32(0)
            for column in T.serial(width):
                total[0] = total[0] + (
                    T.cast(x[row, column], "float32") * T.cast(x[row, column], "float32")
                )
            total[0] = T.rsqrt(total[0] / T.float32(width) + T.float32(1e-6))
            for column in T.serial(width):
                y[row, column] = T.cast(
                    T.cast(x[row, column], "float32")
                    * total[0]
                    * T.cast(weight[column], "float32"),
                    "bfloat16",
                )

    return _build(rmsnorm)


def solve(hidden_states, weight):
    y = torch.empty_like(hidden_states)
    _compiled(*hidden_states.shape)(hidden_states, weight, y)
    return y
