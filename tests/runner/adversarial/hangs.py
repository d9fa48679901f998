"""Never returns."""

import cutlass

_DSL = cutlass.Float32


def solve(hidden_states, weight):
    while True:
        pass
