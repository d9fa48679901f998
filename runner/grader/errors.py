"""Errors and sizes of whole tensors, at float64 and a bounded number of elements at a time."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from runner.grader import limits


@dataclass(frozen=True)
class Errors:
    """Of one tensor against its target: the largest error, the root mean square, the counts."""

    largest: float
    rms: float
    n_wrong: int
    n_not_finite: int
    first_wrong: int | None


def errors_of(
    actual: torch.Tensor, target: torch.Tensor, *, allowance: float, skip_not_finite: bool = False
) -> Errors:
    """Compare two tensors of one shape, at least one element.

    Args:
        allowance: an element whose error is over it, or not finite, is wrong; equal infinities
            have no error.
        skip_not_finite: leave out the elements whose error is not finite.
    """
    largest = squares = 0.0
    n_wrong = n_not_finite = 0
    first_wrong: int | None = None
    for start, ours, theirs in _chunks(actual, target):
        error = (ours - theirs).abs()
        biggest = float(error.max())
        if not math.isfinite(biggest):
            # Equal infinities have no error, though their difference is NaN.
            error = torch.where(ours == theirs, 0.0, error)
            if skip_not_finite:
                error = torch.where(error.isfinite(), error, 0.0)
            n_not_finite += int((~ours.isfinite() & (ours != theirs)).sum())
            biggest = float(error.nan_to_num(nan=math.inf, posinf=math.inf).max())
        if not biggest <= allowance or math.isinf(biggest):
            bad = ~(error <= allowance) | ~error.isfinite()
            if first_wrong is None:
                first_wrong = start + int(bad.int().argmax())
            n_wrong += int(bad.sum())
        largest = max(largest, biggest)
        squares += float(error.square_().sum()) if math.isfinite(biggest) else math.inf
    rms = math.sqrt(squares / actual.numel())
    return Errors(largest, rms, n_wrong, 0 if skip_not_finite else n_not_finite, first_wrong)


def sizes_of(tensor: torch.Tensor) -> tuple[float, float]:
    """Return the largest magnitude and the root mean square, over the finite elements."""
    largest = squares = 0.0
    for _, chunk, _ in _chunks(tensor, tensor):
        biggest = float(chunk.abs().max())
        if not math.isfinite(biggest):
            chunk = torch.where(chunk.isfinite(), chunk, 0.0)  # noqa: PLW2901
            biggest = float(chunk.abs().max())
        largest = max(largest, biggest)
        squares += float(chunk.square().sum())
    return largest, math.sqrt(squares / tensor.numel())


def _chunks(
    first: torch.Tensor, second: torch.Tensor
) -> Iterator[tuple[int, torch.Tensor, torch.Tensor]]:
    """Yield the two, flat and at float64, a bounded number of elements at a time."""
    flat_first, flat_second = first.reshape(-1), second.reshape(-1)
    for start in range(0, flat_first.numel(), limits.CHUNK_ELEMENTS):
        part = slice(start, start + limits.CHUNK_ELEMENTS)
        yield start, flat_first[part].double(), flat_second[part].double()
