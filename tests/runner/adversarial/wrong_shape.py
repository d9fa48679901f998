"""Returns one row too few."""

import cutlass

_DSL = cutlass.Float32


def solve(hidden_states, weight):
    return hidden_states[:-1].clone()
