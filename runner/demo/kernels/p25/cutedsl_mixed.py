"""PyTorch copies the K pages by indexing; the DSL copies the V pages byte by byte."""

import functools

import cutlass.cute as cute
from cutlass import Int64, Uint8
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
def _copy(source: cute.Tensor, target: cute.Tensor, mapping: cute.Tensor):
    for i in range(mapping.shape[0]):
        for byte in range(source.shape[1]):
            target[mapping[i, 1], byte] = source[mapping[i, 0], byte]


@functools.cache
def _compiled(pages, page_bytes, mappings):
    return cute.compile(
        _copy,
        _fake(Uint8, pages, page_bytes),
        _fake(Uint8, pages, page_bytes),
        _fake(Int64, mappings, 2),
        options="--enable-tvm-ffi",
    )


def solve(src_k, src_v, dst_k, dst_v, block_mapping):
    source, target = block_mapping.unbind(1)
    dst_k[target] = src_k[source]
    pages = src_v.shape[0]
    kernel = _compiled(pages, src_v[0].numel(), block_mapping.shape[0])
    kernel(src_v.view(pages, -1), dst_v.view(pages, -1), block_mapping)
    return dst_k, dst_v
