"""Calls itself a CuTe DSL kernel and loads TIRx when it is called."""

import cutlass

_DSL = cutlass.Float32


def solve(hidden_states, weight):
    import tvm

    assert tvm.__version__
    return hidden_states.clone()
