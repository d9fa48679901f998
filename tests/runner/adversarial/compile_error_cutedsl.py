"""CuTe DSL refuses to trace it, on import: a float plus a string."""

import cutlass
from cutlass import cute
from cutlass.cute.runtime import make_fake_compact_tensor
from cutlass.cute.typing import AddressSpace


@cute.jit
def _broken(x: cute.Tensor):
    for i in range(x.shape[0]):
        x[i] = x[i] + "one"


_compiled = cute.compile(
    _broken,
    make_fake_compact_tensor(cutlass.Float32, (8,), memspace=AddressSpace.generic),
    options="--enable-tvm-ffi",
)


def solve(hidden_states, weight):
    return hidden_states
