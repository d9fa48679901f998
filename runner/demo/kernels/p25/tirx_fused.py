"""One loop over the mapping copies a K and a V page byte by byte."""

import functools

import tvm
from tvm.script import tirx as T


def _build(function):
    """Compile one function for the CPU and return its cheapest entry."""
    module = tvm.IRModule({"main": function})
    return tvm.compile(module, target=tvm.target.Target("llvm"), tir_pipeline="tirx").mod["main"]


@functools.cache
def _compiled(pages, width, mappings):
    @T.prim_func
    def copy(
        src_k_: T.handle, src_v_: T.handle, dst_k_: T.handle, dst_v_: T.handle, mapping_: T.handle
    ):
        src_k = T.match_buffer(src_k_, (pages, width), "uint8")
        src_v = T.match_buffer(src_v_, (pages, width), "uint8")
        dst_k = T.match_buffer(dst_k_, (pages, width), "uint8")
        dst_v = T.match_buffer(dst_v_, (pages, width), "uint8")
        mapping = T.match_buffer(mapping_, (mappings, 2), "int64")
        for i in T.serial(mappings):
            for word in T.serial(width):
                dst_k[mapping[i, 1], word] = src_k[mapping[i, 0], word]
            for word in T.serial(width):
                dst_v[mapping[i, 1], word] = src_v[mapping[i, 0], word]

    return _build(copy)


def solve(src_k, src_v, dst_k, dst_v, block_mapping):
    pages = src_k.shape[0]
    pools = [pool.view(pages, -1) for pool in (src_k, src_v, dst_k, dst_v)]
    _compiled(pages, pools[0].shape[1], block_mapping.shape[0])(*pools, block_mapping)
    return dst_k, dst_v
