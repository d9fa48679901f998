"""The rules that judge element by element: steps between FP8 codes, and relative errors."""

from dataclasses import dataclass

import torch

from problems.tolerance import ALWAYS_ALLOWED


@dataclass(frozen=True)
class Deviation:
    """How one tensor departs from its target.

    `ratio` is error over allowance; `reason` says what is wrong, None if nothing is. `first_wrong`
    is the flat index of a wrong element, and `n_not_finite` how many are NaN or infinite.
    """

    ratio: float
    reason: str | None = None
    n_wrong: int = 0
    first_wrong: int | None = None
    n_not_finite: int = 0


def code_steps(
    actual: torch.Tensor, target: torch.Tensor, *, limit: float, n_written: int
) -> Deviation:
    """Compare codes of float8_e4m3fn, uint8, by their places in the order of their values.

    Both zeros have one place. The code of NaN passes only where the target has the same.

    Args:
        limit: the share of the codes written that may be one step off; ALWAYS_ALLOWED codes may.
        n_written: how many of the codes were written.
    """
    steps = (_order(actual) - _order(target)).abs()
    is_nan = ((actual & 0x7F) == 0x7F) & (actual != target)
    is_far = (steps > 1) | is_nan
    n_far, n_different = int(is_far.sum()), int((steps > 0).sum())
    n_allowed = max(int(limit * n_written), ALWAYS_ALLOWED)
    ratio = n_different / n_allowed
    if n_far:
        reason = f"{n_far} of {actual.numel()} codes are NaN or more than one step off"
        return Deviation(ratio, reason, n_far, _first(is_far), int(is_nan.sum()))
    if n_different > n_allowed:
        reason = f"{n_different} of {n_written} codes are one step off; {n_allowed} may be"
        return Deviation(ratio, reason, n_different, _first(steps > 0))
    return Deviation(ratio)


def relative_errors(actual: torch.Tensor, target: torch.Tensor, *, limit: float) -> Deviation:
    """Compare each element with its target's own magnitude; a target of zero allows zero alone.

    All at once and at float64: meant for scales and the like, not for whole activations.
    """
    ours, theirs = actual.double(), target.double()
    ratios = (ours - theirs).abs() / (limit * theirs.abs())
    ratios = torch.where(ours == theirs, 0.0, ratios).nan_to_num(nan=torch.inf, posinf=torch.inf)
    is_wrong = ratios > 1
    ratio, n_wrong = float(ratios.max()), int(is_wrong.sum())
    if n_wrong == 0:
        return Deviation(ratio)
    reason = f"{n_wrong} of {actual.numel()} elements are over {limit:.4g} of the right value off"
    n_not_finite = int((~ours.isfinite() & (ours != theirs)).sum())
    return Deviation(ratio, reason, n_wrong, _first(is_wrong), n_not_finite)


def _order(codes: torch.Tensor) -> torch.Tensor:
    wide = codes.to(torch.int16)
    return torch.where(wide < 128, wide, 128 - wide)


def _first(is_wrong: torch.Tensor) -> int:
    return int(is_wrong.reshape(-1).int().argmax())
