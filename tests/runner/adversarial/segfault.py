"""Reads address 0."""

import ctypes

import cutlass

_DSL = cutlass.Float32


def solve(hidden_states, weight):
    return ctypes.string_at(0)
