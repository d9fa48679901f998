"""One loop nest does scores, softmax and weighted sum, one scalar at a time."""

import functools

import torch
import tvm
from tvm.script import tirx as T


def _build(function):
    """Compile one function for the CPU and return its cheapest entry."""
    module = tvm.IRModule({"main": function})
    return tvm.compile(module, target=tvm.target.Target("llvm"), tir_pipeline="tirx").mod["main"]


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
        dot = T.alloc_local((1,), "float32")
        peak = T.alloc_local((1,), "float32")
        total = T.alloc_local((1,), "float32")
        for request in T.serial(requests):
            for head in T.serial(heads):
                peak[0] = T.float32("-inf")
                for t in T.serial(indptr[request + 1] - indptr[request]):
                    dot[0] = T.float32(0)
                    for d in T.serial(dim):
                        dot[0] = dot[0] + T.cast(q[request, head, d], "float32") * T.cast(
                            k_cache[indices[indptr[request] + t], d], "float32"
                        )
                    logits[t] = dot[0] * scale
                    peak[0] = T.max(peak[0], logits[t])
                total[0] = T.float32(0)
                for t in T.serial(indptr[request + 1] - indptr[request]):
                    logits[t] = T.exp(logits[t] - peak[0])
                    total[0] = total[0] + logits[t]
                for d in T.serial(dim):
                    dot[0] = T.float32(0)
                    for t in T.serial(indptr[request + 1] - indptr[request]):
                        dot[0] = dot[0] + logits[t] * T.cast(
                            v_cache[indices[indptr[request] + t], d], "float32"
                        )
                    output[request, head, d] = T.cast(dot[0] / total[0], "bfloat16")
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
