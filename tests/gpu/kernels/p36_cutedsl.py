"""RMSNorm over 128-wide bfloat16 rows: sixteen lanes a row, sixteen bytes a lane."""

import functools

import cutlass
import torch
from cuda.bindings.driver import CUstream
from cutlass import Float32, cute
from cutlass.cute.runtime import make_fake_compact_tensor, make_fake_stream

VECTOR = 8
LANES = 16
THREADS = 256
ROWS = THREADS // LANES
EPS = 1e-6


@cute.kernel
def _normalise(x: cute.Tensor, w: cute.Tensor, y: cute.Tensor, n_rows: cutlass.Int32):
    thread, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    lane = thread % LANES
    row = block * ROWS + thread // LANES
    # Lanes past the end repeat the last row: a shuffle needs all of them.
    if row >= n_rows:
        row = n_rows - 1
    source = cute.zipped_divide(x[(row, None)], (VECTOR,))
    weight = cute.zipped_divide(w, (VECTOR,))
    target = cute.zipped_divide(y[(row, None)], (VECTOR,))
    held = cute.make_rmem_tensor((VECTOR,), x.element_type)
    scale = cute.make_rmem_tensor((VECTOR,), w.element_type)
    cute.autovec_copy(source[(None, lane)], held)
    cute.autovec_copy(weight[(None, lane)], scale)
    wide = held.load().to(Float32)
    total = (wide * wide).reduce(cute.ReductionOp.ADD, Float32(0.0), 0)
    total += cute.arch.shuffle_sync_bfly(total, offset=8)
    total += cute.arch.shuffle_sync_bfly(total, offset=4)
    total += cute.arch.shuffle_sync_bfly(total, offset=2)
    total += cute.arch.shuffle_sync_bfly(total, offset=1)
    inverse = Float32(1.0) / cute.math.sqrt(total / Float32(VECTOR * LANES) + Float32(EPS))
    held.store((wide * inverse * scale.load().to(Float32)).to(y.element_type))
    cute.autovec_copy(held, target[(None, lane)])


@cute.jit
def _launch(x: cute.Tensor, w: cute.Tensor, y: cute.Tensor, stream: CUstream):
    n_rows = x.shape[0]
    _normalise(x, w, y, n_rows).launch(
        grid=((n_rows + ROWS - 1) // ROWS, 1, 1), block=(THREADS, 1, 1), stream=stream
    )


@functools.cache
def _compiled():
    rows = cute.sym_int()
    matrices = [
        make_fake_compact_tensor(
            cutlass.BFloat16, (rows, VECTOR * LANES), stride_order=(1, 0), assumed_align=16
        )
        for _ in range(2)
    ]
    vector = make_fake_compact_tensor(cutlass.BFloat16, (VECTOR * LANES,), assumed_align=16)
    stream = make_fake_stream(use_tvm_ffi_env_stream=True)
    return cute.compile(
        _launch, matrices[0], vector, matrices[1], stream, options="--enable-tvm-ffi"
    )


def solve(hidden_states, weight):
    """Return the rows divided by their root mean square and scaled by `weight`."""
    y = torch.empty_like(hidden_states)
    _compiled()(hidden_states, weight, y)
    return y
