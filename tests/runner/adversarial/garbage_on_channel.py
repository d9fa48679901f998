"""Writes garbage to every socket it inherited."""

import os
import stat

import cutlass

_DSL = cutlass.Float32


def solve(hidden_states, weight):
    for name in os.listdir("/proc/self/fd"):
        fd = int(name)
        try:
            if stat.S_ISSOCK(os.fstat(fd).st_mode):
                os.write(fd, b"\x00\x00\x00\x05{{{{{")
        except OSError:
            continue
    return hidden_states.clone()
