"""The cheap check of every timed output against eager's, under bounds seen in correctness draws."""

from collections import defaultdict
from dataclasses import dataclass

import torch

from problems.tolerance import CodeSteps, Exact, Frobenius, Relative, Rule
from runner.grader.accuracy import Truth, budget, differing, parts
from runner.grader.errors import errors_of, sizes_of


@dataclass
class _Bound:
    """The farthest that a passing output and eager's can lie apart, over eager's own size."""

    largest: float = 0.0
    rms: float = 0.0


class Screen:
    """Says which timed outputs are beyond doubt; the others go to the anchor, which decides.

    A passing output is within its allowance of the anchor and eager is within its own error of
    it, so the two are within the sum of each other. Both scale with the output, so the bound is
    kept relative to the output's size, the largest of all correctness draws.
    """

    def __init__(self) -> None:
        self._bounds: dict[tuple[int, str], _Bound] = defaultdict(_Bound)

    def learn(self, output: int, truth: Truth, rule: Rule) -> None:
        """Take the bounds of one output of one correctness draw."""
        if truth.expected.numel() == 0 or _is_exact(truth.expected, rule):
            return
        for place, _, expected, anchor in parts(truth.expected, truth, rule):
            allowed = budget(Truth(expected, anchor))
            bound = self._bounds[output, place]
            if allowed.rms == 0:
                continue
            if isinstance(rule, Frobenius):
                bound.rms = max(bound.rms, rule.limit + allowed.reference_rms / allowed.rms)
                continue
            apart = (allowed.allowance + allowed.reference_error) / allowed.largest
            bound.largest = max(bound.largest, apart)
            apart = (allowed.rms_allowance + allowed.reference_rms) / allowed.rms
            bound.rms = max(bound.rms, apart)

    def clears(self, output: int, actual: torch.Tensor, expected: torch.Tensor, rule: Rule) -> bool:
        """Whether a timed output needs no anchor, being close enough to eager's of that seed."""
        if expected.numel() == 0:
            return True
        if _is_exact(expected, rule):
            bitwise = isinstance(rule, Exact)
            return not bool(differing(actual, expected, bitwise=bitwise).any())
        for place, ours, theirs, _ in parts(actual, Truth(expected, expected), rule):
            bound = self._bounds[output, place]
            largest, rms = sizes_of(theirs)
            reach = float("inf") if isinstance(rule, Frobenius) else bound.largest * largest
            apart = errors_of(ours, theirs, allowance=reach)
            if apart.n_wrong or apart.rms > bound.rms * rms:
                return False
        return True


def _is_exact(expected: torch.Tensor, rule: Rule) -> bool:
    """Whether only an output equal to eager's is beyond doubt; any other goes to the anchor."""
    if isinstance(rule, CodeSteps | Relative):
        return True
    return isinstance(rule, Exact) or not expected.dtype.is_floating_point
