"""Honest: problem 36 as one CuTe DSL loop nest on the CPU."""

import cutlass
import torch
from cutlass import cute
from cutlass.cute.runtime import make_fake_compact_tensor
from cutlass.cute.typing import AddressSpace


@cute.jit
def _normalise(x: cute.Tensor, w: cute.Tensor, y: cute.Tensor):
    for i in range(x.shape[0]):
        squares = cutlass.Float32(0.0)
        for j in range(128):
            squares = squares + x[i, j] * x[i, j]
        inverse = cute.math.rsqrt(squares / cutlass.Float32(128.0) + cutlass.Float32(1e-6))
        for j in range(128):
            y[i, j] = x[i, j] * inverse * w[j]


def _compile():
    n_rows = cute.sym_int()
    rows = [
        make_fake_compact_tensor(
            cutlass.Float32, (n_rows, 128), stride_order=(1, 0), memspace=AddressSpace.generic
        )
        for _ in range(2)
    ]
    weight = make_fake_compact_tensor(cutlass.Float32, (128,), memspace=AddressSpace.generic)
    return cute.compile(_normalise, rows[0], weight, rows[1], options="--enable-tvm-ffi")


_compiled = _compile()


def solve(hidden_states, weight):
    y = torch.empty(hidden_states.shape, dtype=torch.float32)
    # The host's LLVM cannot round to bfloat16 here, so eager widens and rounds.
    _compiled(hidden_states.float(), weight.float(), y)
    return y.to(torch.bfloat16)
