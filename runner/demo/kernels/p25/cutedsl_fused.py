"""One loop over the mapping copies a K and a V page byte by byte."""

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
def _copy(
    src_k: cute.Tensor,
    src_v: cute.Tensor,
    dst_k: cute.Tensor,
    dst_v: cute.Tensor,
    mapping: cute.Tensor,
):
    for i in range(mapping.shape[0]):
        source = mapping[i, 0]
        target = mapping[i, 1]
        for byte in range(src_k.shape[1]):
            dst_k[target, byte] = src_k[source, byte]
            dst_v[target, byte] = src_v[source, byte]


@functools.cache
def _compiled(pages, width, mappings):
    pool = _fake(Uint8, pages, width)
    return cute.compile(
        _copy, pool, pool, pool, pool, _fake(Int64, mappings, 2), options="--enable-tvm-ffi"
    )


def solve(src_k, src_v, dst_k, dst_v, block_mapping):
    pages = src_k.shape[0]
    pools = [pool.view(pages, -1) for pool in (src_k, src_v, dst_k, dst_v)]
    _compiled(pages, pools[0].shape[1], block_mapping.shape[0])(*pools, block_mapping)
    return dst_k, dst_v
