"""RMSNorm over 128-wide bfloat16 rows: sixteen lanes a row, sixteen bytes a lane."""

import functools

import torch
import tvm
from tvm.script import tirx as T  # noqa: N812

VECTOR = 8
LANES = 16
THREADS = 256
ROWS = THREADS // LANES
EPS = 1e-6


@T.prim_func
def _normalise(x_p: T.handle, w_p: T.handle, y_p: T.handle):
    n_rows = T.int32()
    x = T.match_buffer(x_p, (n_rows, 128), "bfloat16", align=16)
    w = T.match_buffer(w_p, (128,), "bfloat16", align=16)
    y = T.match_buffer(y_p, (n_rows, 128), "bfloat16", align=16)
    T.device_entry()
    block = T.cta_id([T.ceildiv(n_rows, 16)])
    thread = T.thread_id([256])
    lane = thread % 16
    row = T.min(block * 16 + thread // 16, n_rows - 1)
    rx = T.alloc_local((8,), "bfloat16")
    rw = T.alloc_local((8,), "bfloat16")
    wide = T.alloc_local((8,), "float32")
    for e in T.vectorized(8):
        rx[e] = x[row, lane * 8 + e]
    for e in T.vectorized(8):
        rw[e] = w[lane * 8 + e]
    total: T.float32 = 0.0
    for e in T.unroll(8):
        wide[e] = T.cast(rx[e], "float32")
        total = total + wide[e] * wide[e]
    for k in T.unroll(4):
        total = total + T.tvm_warp_shuffle_xor(
            T.uint32(0xFFFFFFFF), total, T.shift_left(1, k), 32, 32
        )
    inverse: T.float32 = T.rsqrt(total / T.float32(128) + T.float32(1e-6))
    for e in T.unroll(8):
        rx[e] = T.cast(wide[e] * inverse * T.cast(rw[e], "float32"), "bfloat16")
    for e in T.vectorized(8):
        y[row, lane * 8 + e] = rx[e]


@functools.cache
def _compiled():
    target = tvm.target.Target({"kind": "cuda", "arch": "sm_90a"})
    executable = tvm.compile(tvm.IRModule({"main": _normalise}), target=target, tir_pipeline="tirx")
    return executable, executable.mod["main"] if torch.cuda.is_available() else None


def solve(hidden_states, weight):
    """Return the rows divided by their root mean square and scaled by `weight`."""
    y = torch.empty_like(hidden_states)
    _compiled()[1](hidden_states, weight, y)
    return y
