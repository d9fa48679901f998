"""PyTorch copies the K pages by indexing; the DSL copies the V pages byte by byte."""

import functools

import tvm
from tvm.script import tirx as T


def _build(function):
    """Compile one function for the CPU and return its cheapest entry."""
    module = tvm.IRModule({"main": function})
    return tvm.compile(module, target=tvm.target.Target("llvm"), tir_pipeline="tirx").mod["main"]


@functools.cache
def _compiled(pages, page_bytes, mappings):
    @T.prim_func
    def copy(source_: T.handle, target_: T.handle, mapping_: T.handle):
        source = T.match_buffer(source_, (pages, page_bytes), "uint8")
        target = T.match_buffer(target_, (pages, page_bytes), "uint8")
        mapping = T.match_buffer(mapping_, (mappings, 2), "int64")
        for i in T.serial(mappings):
            for byte in T.serial(page_bytes):
                target[mapping[i, 1], byte] = source[mapping[i, 0], byte]

    return _build(copy)


def solve(src_k, src_v, dst_k, dst_v, block_mapping):
    source, target = block_mapping.unbind(1)
    dst_k[target] = src_k[source]
    pages = src_v.shape[0]
    kernel = _compiled(pages, src_v[0].numel(), block_mapping.shape[0])
    kernel(src_v.view(pages, -1), dst_v.view(pages, -1), block_mapping)
    return dst_k, dst_v
