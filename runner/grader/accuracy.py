"""How far an output may be from the anchor: one rule gives both the verdict and its explanation."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from problems.tolerance import CodeSteps, Exact, Frobenius, PerHead, Relative, Rule
from runner.grader import limits, steps
from runner.grader.errors import Errors, errors_of, sizes_of
from runner.messages import Mismatch
from runner.protocol import Outcome

# The error of rounding to the nearest of steps of size s is uniform in ±s/2, whose
# root mean square is s/√12.
_ROUNDING_RMS = 1 / math.sqrt(12)


@dataclass(frozen=True)
class Truth:
    """What one output is compared with.

    `expected` is the reference at its own dtypes, `anchor` the same at float64 (for outputs that
    are not floating, `expected` again, unless their rule is CodeSteps); `before`, what the
    reference found there, for an output that is an input changed in place. Same shape, same
    device as the output.
    """

    expected: torch.Tensor
    anchor: torch.Tensor
    before: torch.Tensor | None = None


@dataclass(frozen=True)
class Budget:
    """Allowances against the anchor, and the sizes that they came from; absolute numbers."""

    allowance: float
    rms_allowance: float
    reference_error: float
    reference_rms: float
    largest: float
    rms: float


@dataclass(frozen=True)
class Found:
    """How one output compares. A ratio is error over allowance: at most 1 passes."""

    error_ratio: float | None = None
    rms_ratio: float | None = None
    outcome: Outcome | None = None
    mismatch: Mismatch | None = None


def budget(truth: Truth) -> Budget:
    """Return what the protocol's two rules allow.

    The largest error may be ALLOWANCE_FACTOR times the larger of the reference's own and one
    rounding step at the anchor's largest magnitude; the root-mean-square error likewise, with a
    rounding step's root mean square. Places where reference or anchor is not finite do not enter.
    """
    own = errors_of(truth.expected, truth.anchor, allowance=math.inf, skip_not_finite=True)
    largest, rms = sizes_of(truth.anchor)
    step = torch.finfo(truth.expected.dtype).eps
    factor = limits.ALLOWANCE_FACTOR
    return Budget(
        allowance=factor * max(own.largest, step * largest),
        rms_allowance=factor * max(own.rms, step * rms * _ROUNDING_RMS),
        reference_error=own.largest,
        reference_rms=own.rms,
        largest=largest,
        rms=rms,
    )


def compare(actual: torch.Tensor, truth: Truth, *, rule: Rule, path: str) -> Found:
    """Compare one output, of the right shape and dtype, with the truth.

    A NaN, or an infinity where the anchor has none, never passes; equal infinities are equal.
    """
    if actual.numel() == 0:
        return Found()
    if isinstance(rule, CodeSteps | Relative):
        return _by_element(actual, truth, rule, path)
    if isinstance(rule, Exact) or not truth.expected.dtype.is_floating_point:
        return _exactly(actual, truth.expected, path, bitwise=isinstance(rule, Exact))
    if isinstance(rule, Frobenius):
        return _by_frobenius(actual, truth, rule.limit, path)
    return _worst(
        _by_default(ours, Truth(expected, anchor), f"{path}{place}")
        for place, ours, expected, anchor in parts(actual, truth, rule)
    )


def parts(
    actual: torch.Tensor, truth: Truth, rule: Rule
) -> Iterator[tuple[str, torch.Tensor, torch.Tensor, torch.Tensor]]:
    """Yield what the default rule judges by itself: where it is, actual, expected and anchor."""
    if not isinstance(rule, PerHead):
        yield "", actual, truth.expected, truth.anchor
        return
    for head in range(actual.shape[rule.axis]):
        tensors = (actual, truth.expected, truth.anchor)
        ours, expected, anchor = (tensor.select(rule.axis, head) for tensor in tensors)
        yield f" at index {head} of axis {rule.axis}", ours, expected, anchor


def _by_default(actual: torch.Tensor, truth: Truth, path: str) -> Found:
    allowed = budget(truth)
    errors = errors_of(actual, truth.anchor, allowance=allowed.allowance)
    error_ratio = _ratio(errors.largest, allowed.allowance)
    rms_ratio = _ratio(errors.rms, allowed.rms_allowance)
    if errors.n_wrong == 0 and rms_ratio <= 1:
        return Found(error_ratio, rms_ratio)
    if errors.n_not_finite:
        reason = f"{errors.n_not_finite} of {actual.numel()} elements are NaN or infinite"
    elif errors.n_wrong:
        reason = (
            f"the largest error {errors.largest:.4g} is over its allowance {allowed.allowance:.4g}"
        )
    else:
        reason = (
            f"the root-mean-square error {errors.rms:.4g} is over its allowance"
            f" {allowed.rms_allowance:.4g}; the largest error is within its own, so this would"
            " pass the release's rule"
        )
    mismatch = Mismatch(
        path=_place(path, actual.shape, errors.first_wrong),
        reason=reason,
        error=_finite(errors.largest),
        allowance=_finite(allowed.allowance),
        rms_error=_finite(errors.rms),
        rms_allowance=_finite(allowed.rms_allowance),
        n_wrong=errors.n_wrong,
        n_elements=actual.numel(),
    )
    return Found(_finite(error_ratio), _finite(rms_ratio), _wrong(errors), mismatch)


def _by_frobenius(actual: torch.Tensor, truth: Truth, limit: float, path: str) -> Found:
    errors = errors_of(actual, truth.anchor, allowance=math.inf)
    _, size = sizes_of(truth.anchor)
    relative = _ratio(errors.rms, size)
    if errors.n_not_finite == 0 and relative <= limit:
        return Found(error_ratio=relative / limit)
    reason = f"the relative Frobenius error {relative:.4g} is over its limit {limit:.4g}"
    if errors.n_not_finite:
        reason = f"{errors.n_not_finite} of {actual.numel()} elements are NaN or infinite"
    mismatch = Mismatch(
        path=_place(path, actual.shape, errors.first_wrong),
        reason=reason,
        error=_finite(relative),
        allowance=limit,
        n_wrong=errors.n_wrong or None,
        n_elements=actual.numel(),
    )
    return Found(_finite(relative / limit), None, _wrong(errors), mismatch)


def _by_element(actual: torch.Tensor, truth: Truth, rule: CodeSteps | Relative, path: str) -> Found:
    if isinstance(rule, CodeSteps):
        n_written = actual.numel()
        if truth.before is not None:
            written = touched_rows(truth.expected, truth.before)
            n_written = int(written.sum()) * actual.shape[-1]
        found = steps.code_steps(actual, truth.anchor, limit=rule.limit, n_written=n_written)
    else:
        found = steps.relative_errors(actual, truth.anchor, limit=rule.limit)
    if found.reason is None:
        return Found(error_ratio=found.ratio)
    mismatch = Mismatch(
        path=_place(path, actual.shape, found.first_wrong),
        reason=found.reason,
        n_wrong=found.n_wrong,
        n_elements=actual.numel(),
    )
    outcome = Outcome.NON_FINITE if found.n_not_finite else Outcome.WRONG_VALUES
    return Found(_finite(found.ratio), None, outcome, mismatch)


def _exactly(actual: torch.Tensor, expected: torch.Tensor, path: str, *, bitwise: bool) -> Found:
    different = differing(actual, expected, bitwise=bitwise)
    n_wrong = int(different.sum())
    if n_wrong == 0:
        return Found(error_ratio=0.0)
    first = int(different.reshape(-1).int().argmax())
    mismatch = Mismatch(
        path=_place(path, actual.shape, first),
        reason=f"{n_wrong} of {actual.numel()} elements differ; they must be equal",
        allowance=0.0,
        n_wrong=n_wrong,
        n_elements=actual.numel(),
    )
    return Found(outcome=Outcome.WRONG_VALUES, mismatch=mismatch)


def differing(actual: torch.Tensor, expected: torch.Tensor, *, bitwise: bool) -> torch.Tensor:
    """Return, in the tensors' shape, where they differ; bitwise, a NaN may equal itself."""
    if not bitwise or not actual.dtype.is_floating_point:
        return actual != expected
    width = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[actual.element_size()]
    return actual.contiguous().view(width) != expected.contiguous().view(width)


def touched_rows(expected: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
    """Return, [rows, 1] along the last axis, where the reference changed a row's bits at all."""
    rows = (-1, expected.shape[-1] if expected.dim() else 1)
    return differing(expected, before, bitwise=True).reshape(rows).any(1, keepdim=True)


def _worst(founds: Iterator[Found]) -> Found:
    """Return the first that is wrong, else the largest ratios."""
    error_ratio = rms_ratio = 0.0
    for found in founds:
        if found.outcome is not None:
            return found
        error_ratio = max(error_ratio, found.error_ratio or 0.0)
        rms_ratio = max(rms_ratio, found.rms_ratio or 0.0)
    return Found(error_ratio, rms_ratio)


def _wrong(errors: Errors) -> Outcome:
    return Outcome.NON_FINITE if errors.n_not_finite else Outcome.WRONG_VALUES


def _ratio(error: float, allowance: float) -> float:
    if error == 0:
        return 0.0
    return error / allowance if allowance > 0 else math.inf


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _place(path: str, shape: torch.Size, flat: int | None) -> str:
    if flat is None or not shape:
        return path
    index = []
    for size in reversed(shape):
        flat, position = divmod(flat, size)
        index.append(position)
    return f"{path}[{', '.join(map(str, reversed(index)))}]"
