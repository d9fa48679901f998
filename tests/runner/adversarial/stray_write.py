"""Copies the pages of problem 25 and changes one byte of a source, which must stay as it was."""

import cutlass

_DSL = cutlass.Float32


def solve(src_k, src_v, dst_k, dst_v, block_mapping):
    source, destination = block_mapping.unbind(1)
    dst_k[destination] = src_k[source]
    dst_v[destination] = src_v[source]
    src_v[-1, -1, -1, -1] += 1
    return dst_k, dst_v
