"""The notation of ragged workloads: patterned lengths, and the offsets they add up to."""

from collections.abc import Sequence
from itertools import accumulate


def pattern(n: int, *, step: int, start: int, modulus: int) -> tuple[int, ...]:
    """Return n lengths between 1 and `modulus`: 1 + (step * i + start) mod modulus."""
    return tuple(1 + (step * i + start) % modulus for i in range(n))


def offsets(lengths: Sequence[int]) -> tuple[int, ...]:
    """Return where each sequence starts in a packed list, and at the end the total."""
    return (0, *accumulate(lengths))
