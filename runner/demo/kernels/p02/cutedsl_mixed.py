"""PyTorch gathers, scores and takes the softmax; the DSL sums the weighted values."""

import functools

import cutlass.cute as cute
import torch
from cutlass import Float32, Int32
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
def _weigh(
    weights: cute.Tensor,
    v_cache: cute.Tensor,
    indptr: cute.Tensor,
    indices: cute.Tensor,
    output: cute.Tensor,
):
    for request in range(output.shape[0]):
        for head in range(output.shape[1]):
            for d in range(output.shape[2]):
                total = Float32(0.0)
                for slot in range(indptr[request], indptr[request + 1]):
                    total = total + weights[slot, head] * v_cache[indices[slot], 0, d]
                output[request, head, d] = total


@functools.cache
def _compiled(requests, heads, dim, tokens, pages):
    return cute.compile(
        _weigh,
        _fake(Float32, tokens, heads),
        _fake(Float32, pages, 1, dim),
        _fake(Int32, requests + 1),
        _fake(Int32, tokens),
        _fake(Float32, requests, heads, dim),
        options="--enable-tvm-ffi",
    )


def solve(q, k_cache, v_cache, kv_indptr, kv_indices, sm_scale):
    requests, heads, dim = q.shape
    tokens = kv_indices.shape[0]
    keys = k_cache[kv_indices.long(), 0, 0].float()
    every = torch.einsum("thd,td->th", q.float().repeat_interleave(kv_indptr.diff(), 0), keys)
    parts = (every * sm_scale).split(kv_indptr.diff().tolist())
    weights = torch.cat([torch.softmax(part, dim=0) for part in parts])
    lse = torch.stack([torch.logsumexp(part, dim=0) for part in parts]) * 1.4426950408889634
    output = torch.empty(requests, heads, dim)
    kernel = _compiled(requests, heads, dim, tokens, v_cache.shape[0])
    kernel(weights, v_cache[:, 0].float(), kv_indptr, kv_indices, output)
    return output.to(q.dtype), lse
