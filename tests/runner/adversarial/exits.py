"""Leaves the process with status 0 in the middle of solve."""

import os

import cutlass

_DSL = cutlass.Float32


def solve(hidden_states, weight):
    os._exit(0)
