"""One loop nest: both operands are decoded inside the innermost loop, for every product anew."""

import functools

import cutlass.cute as cute
import torch
from cutlass import Float32, Int32, Uint8
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


@functools.cache
def _tables():
    """Return what each code and each scale byte means; neither depends on the inputs."""
    codes = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])
    scales = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn).float()
    return codes, scales


@cute.jit
def _multiply(
    codes_x: cute.Tensor,
    scales_x: cute.Tensor,
    whole_x: cute.Tensor,
    codes_w: cute.Tensor,
    scales_w: cute.Tensor,
    whole_w: cute.Tensor,
    code_table: cute.Tensor,
    scale_table: cute.Tensor,
    output: cute.Tensor,
):
    whole = whole_x[0] * whole_w[0]
    for batch in range(output.shape[0]):
        for m in range(output.shape[1]):
            for n in range(output.shape[2]):
                total = Float32(0.0)
                for block in range(scales_x.shape[2]):
                    part = Float32(0.0)
                    for j in range(8):
                        x = codes_x[batch, m, block * 8 + j].to(Int32)
                        w = codes_w[batch, n, block * 8 + j].to(Int32)
                        part = part + code_table[x & 15] * code_table[w & 15]
                        part = part + code_table[x >> 4] * code_table[w >> 4]
                    scale_x = scale_table[scales_x[batch, m, block].to(Int32)]
                    scale_w = scale_table[scales_w[batch, n, block].to(Int32)]
                    total = total + part * scale_x * scale_w
                output[batch, m, n] = total * whole


@functools.cache
def _compiled(batch, m, n, blocks):
    return cute.compile(
        _multiply,
        _fake(Uint8, batch, m, blocks * 8),
        _fake(Uint8, batch, m, blocks),
        _fake(Float32, 1),
        _fake(Uint8, batch, n, blocks * 8),
        _fake(Uint8, batch, n, blocks),
        _fake(Float32, 1),
        _fake(Float32, 16),
        _fake(Float32, 256),
        _fake(Float32, batch, m, n),
        options="--enable-tvm-ffi",
    )


def solve(codes_x, scales_x, whole_x, codes_w, scales_w, whole_w):
    batch, m, blocks = scales_x.shape
    n = scales_w.shape[1]
    output = torch.empty(batch, m, n)
    kernel = _compiled(batch, m, n, blocks)
    kernel(
        codes_x,
        scales_x.view(torch.uint8),
        whole_x,
        codes_w,
        scales_w.view(torch.uint8),
        whole_w,
        *_tables(),
        output,
    )
    return output
