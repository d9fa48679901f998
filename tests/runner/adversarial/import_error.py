"""Fails while it is imported: there is no such module."""

import cutlass
import no_such_module

_DSL = cutlass.Float32


def solve(hidden_states, weight):
    return no_such_module.normalise(hidden_states, weight)
