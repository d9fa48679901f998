"""As the fused loop nest, but whole head vectors at a time: no loop over the head's width."""

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
def _compiled(requests, heads, dim, tokens, pages):
    @T.prim_func
    def decode(
        q_: T.handle,
        k_: T.handle,
        v_: T.handle,
        indptr_: T.handle,
        indices_: T.handle,
        scale: T.float32,
        output_: T.handle,
        lse_: T.handle,
    ):
        q = T.match_buffer(q_, (requests, heads, dim), "bfloat16")
        k_cache = T.match_buffer(k_, (pages, dim), "bfloat16")
        v_cache = T.match_buffer(v_, (pages, dim), "bfloat16")
        indptr = T.match_buffer(indptr_, (requests + 1,), "int32")
        indices = T.match_buffer(indices_, (tokens,), "int32")
        output = T.match_buffer(output_, (requests, heads, dim), "bfloat16")
        lse = T.match_buffer(lse_, (requests, heads), "float32")
        logits = T.alloc_local((tokens,), "float32")
        query = T.alloc_local((dim,), "float32")
        products = T.alloc_local((dim,), "float32")
        dot = T.alloc_local((1,), "float32")
        peak = T.alloc_local((1,), "float32")
        total = T.alloc_local((1,), "float32")
        for request in T.serial(requests):
            for head in T.serial(heads):
                for d in T.vectorized(dim):
                    query[d] = T.cast(q[request, head, d], "float32") * scale
                peak[0] = T.float32("-inf")
                for t in T.serial(indptr[request + 1] - indptr[request]):
                    page: T.let = indices[indptr[request] + t]
                    for d in T.vectorized(dim):
                        products[d] = query[d] * T.cast(k_cache[page, d], "float32")
                    dot[0] = T.float32(0)
                    for d in T.serial(dim):
                        dot[0] = dot[0] + products[d]
                    logits[t] = dot[0]
                    peak[0] = T.max(peak[0], dot[0])
                total[0] = T.float32(0)
                for d in T.vectorized(dim):
                    products[d] = T.float32(0)
                for t in T.serial(indptr[request + 1] - indptr[request]):
                    page: T.let = indices[indptr[request] + t]
                    dot[0] = T.exp(logits[t] - peak[0])
                    total[0] = total[0] + dot[0]
                    for d in T.vectorized(dim):
                        products[d] = products[d] + dot[0] * T.cast(v_cache[page, d], "float32")
                for d in T.vectorized(dim):
                    output[request, head, d] = T.cast(products[d] / total[0], "bfloat16")
                lse[request, head] = (peak[0] + T.log(total[0])) * T.float32(1.4426950408889634)

    return _build(decode)


def solve(q, k_cache, v_cache, kv_indptr, kv_indices, sm_scale):
    requests, heads, dim = q.shape
    output = torch.empty_like(q)
    lse = torch.empty(requests, heads)
    kernel = _compiled(requests, heads, dim, kv_indices.shape[0], k_cache.shape[0])
    k, v = k_cache.view(-1, dim), v_cache.view(-1, dim)
    kernel(q, k, v, kv_indptr, kv_indices, sm_scale, output, lse)
    return output, lse
