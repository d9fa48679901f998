"""As the fused loop nest, but whole head vectors at a time: no loop over the head's width."""

import functools

import cutlass.cute as cute
import torch
from cutlass import BFloat16, Float32, Int32
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


@cute.jit
def _decode(
    q: cute.Tensor,
    k_cache: cute.Tensor,
    v_cache: cute.Tensor,
    indptr: cute.Tensor,
    indices: cute.Tensor,
    scale: Float32,
    logits: cute.Tensor,
    output: cute.Tensor,
    lse: cute.Tensor,
):
    for request in range(q.shape[0]):
        first = indptr[request]
        last = indptr[request + 1]
        for head in range(q.shape[1]):
            query = q[request, head, None].load().to(Float32) * scale
            peak = Float32(float("-inf"))
            for slot in range(first, last):
                products = query * k_cache[indices[slot], 0, 0, None].load().to(Float32)
                dot = products.reduce(
                    cute.ReductionOp.ADD, init_val=Float32(0.0), reduction_profile=0
                )
                logits[slot] = dot
                if dot > peak:
                    peak = dot
            total = Float32(0.0)
            value = cute.full((q.shape[2],), 0.0, Float32)
            for slot in range(first, last):
                weight = cute.math.exp(logits[slot] - peak)
                total = total + weight
                value = value + v_cache[indices[slot], 0, 0, None].load().to(Float32) * weight
            output[request, head, None].store(value * (Float32(1.0) / total))
            lse[request, head] = (peak + cute.math.log(total)) * Float32(1.4426950408889634)


@functools.cache
def _compiled(requests, heads, dim, tokens, pages):
    return cute.compile(
        _decode,
        _fake(BFloat16, requests, heads, dim),
        _fake(BFloat16, pages, 1, 1, dim),
        _fake(BFloat16, pages, 1, 1, dim),
        _fake(Int32, requests + 1),
        _fake(Int32, tokens),
        Float32(1.0),
        _fake(Float32, tokens),
        _fake(Float32, requests, heads, dim),
        _fake(Float32, requests, heads),
        options="--enable-tvm-ffi",
    )


def solve(q, k_cache, v_cache, kv_indptr, kv_indices, sm_scale):
    requests, heads, dim = q.shape
    tokens = kv_indices.shape[0]
    logits = torch.empty(tokens)
    output = torch.empty(requests, heads, dim)
    lse = torch.empty(requests, heads)
    kernel = _compiled(requests, heads, dim, tokens, k_cache.shape[0])
    kernel(q, k_cache, v_cache, kv_indptr, kv_indices, sm_scale, logits, output, lse)
    return output.to(q.dtype), lse
