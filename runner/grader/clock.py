"""How one call is timed: the same code for the kernel in the child and for eager in the parent."""

import gc
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch


def timed_call(
    function: Callable[..., Any], inputs: Sequence[Any], *, device: str
) -> tuple[Any, int]:
    """Call the function once and return its result and the nanoseconds it took.

    On `cpu`: the wall clock around the call. On `cuda`: events around the call and the
    synchronisation of the whole device, so that work on side streams is counted. The garbage
    collector rests meanwhile, for a collection belongs to neither side.
    """
    gc.disable()
    try:
        if device == "cpu":
            started_ns = time.perf_counter_ns()
            result = function(*inputs)
            return result, time.perf_counter_ns() - started_ns
        return _timed_by_events(function, inputs)
    finally:
        gc.enable()


def _timed_by_events(function: Callable[..., Any], inputs: Sequence[Any]) -> tuple[Any, int]:
    start = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    end = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
    torch.cuda.synchronize()
    start.record()
    result = function(*inputs)
    torch.cuda.synchronize()
    end.record()
    end.synchronize()
    return result, round(start.elapsed_time(end) * 1e6)
