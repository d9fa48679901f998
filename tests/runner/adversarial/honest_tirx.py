"""Honest: problem 36 as one TIRx loop nest on the CPU."""

import torch
import tvm
from tvm.script import tirx as T  # noqa: N812


@T.prim_func
def _normalise(x_p: T.handle, w_p: T.handle, y_p: T.handle):
    n_rows = T.int32()
    x = T.match_buffer(x_p, (n_rows, 128), "bfloat16")
    w = T.match_buffer(w_p, (128,), "bfloat16")
    y = T.match_buffer(y_p, (n_rows, 128), "bfloat16")
    s = T.alloc_local((1,), "float32")
    for i in T.serial(n_rows):
        s[0] = T.float32(0)
        for j in T.serial(128):
            s[0] = s[0] + T.cast(x[i, j], "float32") * T.cast(x[i, j], "float32")
        s[0] = T.float32(1) / T.sqrt(s[0] / T.float32(128) + T.float32(1e-6))
        for j in T.serial(128):
            y[i, j] = T.cast(
                T.cast(x[i, j], "float32") * s[0] * T.cast(w[j], "float32"), "bfloat16"
            )


_compiled = tvm.compile(
    tvm.IRModule({"main": _normalise}), target=tvm.target.Target("llvm"), tir_pipeline="tirx"
)


def solve(hidden_states, weight):
    y = torch.empty_like(hidden_states)
    _compiled(hidden_states, weight, y)
    return y
