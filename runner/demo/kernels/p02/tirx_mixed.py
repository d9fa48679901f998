"""PyTorch gathers and scores; the DSL does softmax, its sum's natural logarithm, and output."""

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
    def weigh(
        logits_: T.handle,
        v_: T.handle,
        indptr_: T.handle,
        indices_: T.handle,
        output_: T.handle,
        lse_: T.handle,
    ):
        logits = T.match_buffer(logits_, (tokens, heads), "float32")
        v_cache = T.match_buffer(v_, (pages, dim), "bfloat16")
        indptr = T.match_buffer(indptr_, (requests + 1,), "int32")
        indices = T.match_buffer(indices_, (tokens,), "int32")
        output = T.match_buffer(output_, (requests, heads, dim), "bfloat16")
        lse = T.match_buffer(lse_, (requests, heads), "float32")
        value = T.alloc_local((dim,), "float32")
        peak = T.alloc_local((1,), "float32")
        total = T.alloc_local((1,), "float32")
        for request in T.serial(requests):
            for head in T.serial(heads):
                peak[0] = T.float32("-inf")
                for t in T.serial(indptr[request + 1] - indptr[request]):
                    peak[0] = T.max(peak[0], logits[indptr[request] + t, head])
                total[0] = T.float32(0)
                for d in T.serial(dim):
                    value[d] = T.float32(0)
                for t in T.serial(indptr[request + 1] - indptr[request]):
                    slot: T.let = indptr[request] + t
                    weight: T.let = T.exp(logits[slot, head] - peak[0])
                    total[0] = total[0] + weight
                    for d in T.serial(dim):
                        value[d] = value[d] + weight * T.cast(v_cache[indices[slot], d], "float32")
                for d in T.serial(dim):
                    output[request, head, d] = T.cast(value[d] / total[0], "bfloat16")
                lse[request, head] = peak[0] + T.log(total[0])

    return _build(weigh)


def solve(q, k_cache, v_cache, kv_indptr, kv_indices, sm_scale):
    requests, heads, dim = q.shape
    tokens = kv_indices.shape[0]
    queries = q.float().repeat_interleave(kv_indptr.diff(), 0)
    keys = k_cache[kv_indices.long(), 0].float()
    logits = (queries * keys).sum(-1) * sm_scale
    output = torch.empty_like(q)
    lse = torch.empty(requests, heads)
    kernel = _compiled(requests, heads, dim, tokens, v_cache.shape[0])
    kernel(logits, v_cache.view(-1, dim), kv_indptr, kv_indices, output, lse)
    return output, lse
