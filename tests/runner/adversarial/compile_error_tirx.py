"""TIRx refuses it inside solve: a name that does not exist."""

from tvm.script import tirx as T  # noqa: N812


def solve(hidden_states, weight):
    @T.prim_func
    def broken(x_p: T.handle):
        x = T.match_buffer(x_p, (8,), "float32")
        for i in T.serial(8):
            x[i] = no_such_function(x[i])  # noqa: F821

    return broken
