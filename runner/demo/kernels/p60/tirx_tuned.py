"""The weight is decoded once and transposed; each row then adds up whole output rows."""

import functools

import torch
import tvm
from tvm.script import tirx as T


def _build(function):
    """Compile one function for the CPU's own vector width and return its cheapest entry."""
    widths = {"AVX512": "x86-64-v4", "AVX2": "x86-64-v3"}
    found = widths.get(torch.backends.cpu.get_cpu_capability())
    target = tvm.target.Target({"kind": "llvm", "mcpu": found} if found else "llvm")
    module = tvm.IRModule({"main": function})
    return tvm.compile(module, target=target, tir_pipeline="tirx").mod["main"]


@functools.cache
def _tables():
    """Return what each code and each scale byte means; neither depends on the inputs."""
    codes = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])
    scales = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn).float()
    return codes, scales


@functools.cache
def _compiled(batches, m_rows, n_rows, blocks):
    @T.prim_func
    def multiply(
        cx_: T.handle,
        sx_: T.handle,
        gx_: T.handle,
        cw_: T.handle,
        sw_: T.handle,
        gw_: T.handle,
        codes_: T.handle,
        values_: T.handle,
        weight_: T.handle,
        output_: T.handle,
    ):
        codes_x = T.match_buffer(cx_, (batches, m_rows, blocks * 8), "uint8")
        scales_x = T.match_buffer(sx_, (batches, m_rows, blocks), "uint8")
        whole_x = T.match_buffer(gx_, (1,), "float32")
        codes_w = T.match_buffer(cw_, (batches, n_rows, blocks * 8), "uint8")
        scales_w = T.match_buffer(sw_, (batches, n_rows, blocks), "uint8")
        whole_w = T.match_buffer(gw_, (1,), "float32")
        code_table = T.match_buffer(codes_, (16,), "float32")
        scale_table = T.match_buffer(values_, (256,), "float32")
        output = T.match_buffer(output_, (batches, m_rows, n_rows), "float32")
        weight = T.match_buffer(weight_, (blocks * 16, n_rows), "float32")
        sums = T.alloc_local((n_rows,), "float32")
        for batch in T.serial(batches):
            for n in T.serial(n_rows):
                for block in T.serial(blocks):
                    scale_w: T.let = scale_table[T.cast(scales_w[batch, n, block], "int32")]
                    for j in T.serial(8):
                        byte_w: T.let = T.cast(codes_w[batch, n, block * 8 + j], "int32")
                        k: T.let = block * 16 + 2 * j
                        weight[k, n] = code_table[T.bitwise_and(byte_w, 15)] * scale_w
                        weight[k + 1, n] = code_table[T.shift_right(byte_w, 4)] * scale_w
            for m in T.serial(m_rows):
                for n in T.serial(n_rows):
                    sums[n] = T.float32(0)
                for block in T.serial(blocks):
                    scale: T.let = (
                        scale_table[T.cast(scales_x[batch, m, block], "int32")]
                        * whole_x[0]
                        * whole_w[0]
                    )
                    for j in T.serial(8):
                        byte: T.let = T.cast(codes_x[batch, m, block * 8 + j], "int32")
                        low: T.let = code_table[T.bitwise_and(byte, 15)] * scale
                        high: T.let = code_table[T.shift_right(byte, 4)] * scale
                        for n in T.serial(n_rows):
                            sums[n] = (
                                sums[n]
                                + low * weight[block * 16 + 2 * j, n]
                                + high * weight[block * 16 + 2 * j + 1, n]
                            )
                for n in T.serial(n_rows):
                    output[batch, m, n] = sums[n]

    return _build(multiply)


def solve(codes_x, scales_x, whole_x, codes_w, scales_w, whole_w):
    batch, m, blocks = scales_x.shape
    n = scales_w.shape[1]
    output = torch.empty(batch, m, n)
    kernel = _compiled(batch, m, n, blocks)
    weight = torch.empty(blocks * 16, n)
    kernel(
        codes_x,
        scales_x.view(torch.uint8),
        whole_x,
        codes_w,
        scales_w.view(torch.uint8),
        whole_w,
        *_tables(),
        weight,
        output,
    )
    return output
