"""PyTorch finds each row's inverse root mean square; the DSL scales the rows."""

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
    def scale(x_: T.handle, inverse_: T.handle, weight_: T.handle, y_: T.handle):
        x = T.match_buffer(x_, (rows, width), "bfloat16")
        inverse = T.match_buffer(inverse_, (rows,), "float32")
        weight = T.match_buffer(weight_, (width,), "bfloat16")
        y = T.match_buffer(y_, (rows, width), "bfloat16")
        for row in T.serial(rows):
            for column in T.serial(width):
                y[row, column] = T.cast(
                    T.cast(x[row, column], "float32")
                    * inverse[row]
                    * T.cast(weight[column], "float32"),
                    "bfloat16",
                )

    return _build(scale)


def solve(hidden_states, weight):
    wide = hidden_states.float()
    inverse = torch.rsqrt((wide * wide).mean(dim=-1) + 1e-6)
    y = torch.empty_like(hidden_states)
    _compiled(*hidden_states.shape)(hidden_states, inverse, weight, y)
    return y
