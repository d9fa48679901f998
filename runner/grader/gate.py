"""The authoring gate: lazy answers that a problem must reject, and honest ones that it must pass.

A problem whose rule cannot tell these apart would reward a kernel for nothing. Run
`python -m runner.grader.gate 36` while writing one; the tests run it over the whole catalogue.
"""

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from problems import catalog
from runner.grader import structure
from runner.grader.accuracy import Truth, compare
from runner.grader.cases import Answer, Case, set_numerics
from runner.grader.faults import KernelError

SKIPPED_SHARE = 0.01

# What a specification wants otherwise, by problem and check.
AS_SPECIFIED = {
    (47, "input 9 matters"): "norm_min guards a sum of probabilities that never comes near it",
    (73, "input 3 as output[1]"): "the state is returned as it came, in memory of its own",
}


@dataclass(frozen=True)
class Check:
    """One trial of the gate: what was tried, what should come of it, and what came."""

    name: str
    wanted: str
    found: str

    @property
    def holds(self) -> bool:
        """Whether the gate found what it wanted."""
        return self.wanted == self.found


class Gate:
    """One problem at one workload, with a draw, its truth, and another draw to borrow from."""

    def __init__(self, problem: catalog.Problem, *, workload: str, device: str = "cpu") -> None:
        set_numerics()
        self._number = problem.number
        self._case = Case(problem, workload=workload, device=device)
        self._inputs = self._case.draw()
        self._others = self._case.draw()
        self._answer = self._case.reference(self._inputs)
        self._truths = self._case.truths(self._inputs, self._answer)

    def checks(self) -> Iterator[Check]:
        """Yield every check that applies to this problem."""
        for checks in (
            self._lazy_answers(),
            self._borrowed_answers(),
            self._wrong_shape(),
            self._honest_answers(),
            self._inputs_that_matter(),
        ):
            for check in checks:
                if (self._number, check.name) not in AS_SPECIFIED:
                    yield check

    def _lazy_answers(self) -> Iterator[Check]:
        lazy: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
            "zeros": torch.zeros_like,
            "ones": lambda right: torch.ones(right.shape, device=right.device).to(right.dtype),
            "its mean": _mean,
            "99 % of it": _incomplete,
        }
        for name, answer in lazy.items():
            for number, right in enumerate(self._answer.tensors):
                yield self._rejects(f"{name} as {self._path(number)}", number, answer(right))

    def _borrowed_answers(self) -> Iterator[Check]:
        stale = self._case.reference(self._others)
        for number, right in enumerate(self._answer.tensors):
            path = self._path(number)
            if not _same(stale.tensors[number], right):
                yield self._rejects(f"another draw's {path}", number, stale.tensors[number])
            for place, given in enumerate(self._inputs):
                if isinstance(given, torch.Tensor) and _alike(given, right):
                    yield self._rejects(f"input {place} as {path}", number, given)

    def _wrong_shape(self) -> Iterator[Check]:
        first = self._answer.tensors[0]
        cut = first[..., :-1] if first.dim() else first.reshape(1)
        wrong = self._case.answer(self._inputs, _with_first(self._answer.form, cut, self._answer))
        try:
            structure.check(wrong.form, self._answer.form)
        except KernelError:
            yield Check("one column less", "rejected", "rejected")
        else:
            yield Check("one column less", "rejected", "passed")

    def _honest_answers(self) -> Iterator[Check]:
        yield self._passes("the reference itself", self._answer.tensors)
        rounded = [truth.anchor.to(truth.expected.dtype) for truth in self._truths]
        yield self._passes("a float64 evaluation", rounded)
        with warnings.catch_warnings():
            # Switching it back warns about hardware that is not there.
            warnings.simplefilter("ignore", UserWarning)
            with torch.backends.mkldnn.flags(enabled=False):
                wide = self._evaluated(torch.float32, of=(torch.bfloat16, torch.float16))
        yield self._passes("a float32 evaluation by other kernels", wide)
        if self._is_float32:
            narrow = self._evaluated(torch.float16, of=(torch.float32,))
            outcome = "passed" if self._judge(narrow) else "rejected"
            yield Check("float16 internals", "rejected", outcome)

    def _inputs_that_matter(self) -> Iterator[Check]:
        for place in range(len(self._inputs)):
            changed = self._case.private(self._inputs)
            changed[place] = _perturbed(self._inputs[place], self._others[place])
            if changed[place] is None:
                continue
            yield Check(f"input {place} matters", "yes", "yes" if self._moves(changed) else "no")

    def _moves(self, changed: list[Any]) -> bool:
        """Whether changed inputs change the answer, or break it: some belong to one another."""
        try:
            tensors = self._case.reference(changed).tensors
        except IndexError:
            return True
        return not all(map(_same, tensors, self._answer.tensors))

    @property
    def _is_float32(self) -> bool:
        """Whether the problem is one of float32 arithmetic throughout, under the default rule."""
        floats = [x for x in self._inputs if isinstance(x, torch.Tensor) and x.is_floating_point()]
        outputs = [right for right in self._answer.tensors if right.is_floating_point()]
        return bool(floats and outputs) and all(
            tensor.dtype is torch.float32 for tensor in (*floats, *outputs)
        )

    def _evaluated(
        self, dtype: torch.dtype, *, of: Sequence[torch.dtype]
    ) -> tuple[torch.Tensor, ...]:
        inputs = [
            value.to(dtype) if isinstance(value, torch.Tensor) and value.dtype in of else value
            for value in self._case.private(self._inputs)
        ]
        found = self._case.reference(inputs).tensors
        pairs = zip(found, self._answer.tensors, strict=True)
        return tuple(tensor.to(right.dtype) for tensor, right in pairs)

    def _rejects(self, name: str, number: int, wrong: torch.Tensor) -> Check:
        """Try an answer that is right but for one tensor."""
        tensors = list(self._answer.tensors)
        if _same(wrong, tensors[number]):
            return Check(name, "rejected", "is the right answer")
        tensors[number] = wrong
        return Check(name, "rejected", "passed" if self._judge(tensors) else "rejected")

    def _passes(self, name: str, tensors: Sequence[torch.Tensor]) -> Check:
        return Check(name, "passed", "passed" if self._judge(tensors) else "rejected")

    def _judge(self, tensors: Sequence[torch.Tensor]) -> bool:
        return all(
            self._compare(number, tensor, truth)
            for number, (tensor, truth) in enumerate(zip(tensors, self._truths, strict=True))
        )

    def _compare(self, number: int, tensor: torch.Tensor, truth: Truth) -> bool:
        rule = self._case.rule(number, self._answer)
        return compare(tensor, truth, rule=rule, path=self._path(number)).outcome is None

    def _path(self, number: int) -> str:
        return self._case.path(number, self._answer)


def _mean(right: torch.Tensor) -> torch.Tensor:
    mean = right.double().nan_to_num(posinf=0, neginf=0).mean()
    return mean.expand(right.shape).to(right.dtype)


def _incomplete(right: torch.Tensor) -> torch.Tensor:
    """Return the answer with one element in a hundred, at least one of them not zero, left out."""
    flat = right.clone().reshape(-1)
    wide = flat.double().nan_to_num(posinf=0, neginf=0).abs()
    n_skipped = max(1, int(flat.numel() * SKIPPED_SHARE))
    chosen = torch.randperm(flat.numel(), device=flat.device)[:n_skipped]
    chosen[0] = wide.argmax()
    flat[chosen] = torch.zeros((), device=flat.device).to(flat.dtype)
    return flat.reshape(right.shape)


def _perturbed(value: Any, other: Any) -> Any:
    """Return another valid value for an input; None where the problem knows but one."""
    if isinstance(value, torch.Tensor):
        if not _same(value, other):
            return other
        if not value.is_floating_point():
            return None
        rolled = value.reshape(-1).roll(1).reshape(value.shape)
        return value * 1.25 + 0.01 if _same(value, rolled) else rolled
    # Also an epsilon must come out large enough to be seen behind a rounding.
    return value * 1.5 + 0.1 if isinstance(value, float) else None


def _same(left: torch.Tensor, right: torch.Tensor) -> bool:
    bytes_of = [x.contiguous().reshape(-1).view(torch.uint8) for x in (left, right)]
    return left.dtype == right.dtype and torch.equal(*bytes_of)


def _alike(left: torch.Tensor, right: torch.Tensor) -> bool:
    return left.shape == right.shape and left.dtype == right.dtype


def _with_first(form: Any, first: torch.Tensor, answer: Answer) -> Any:
    """Return a result of the reference's container with another first tensor."""
    if form["kind"] == "tensor":
        return first
    n_outputs = len(form["items"])
    return (first, *answer.tensors[1:n_outputs])


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the gate's table; return 1 when something does not hold."""
    parser = argparse.ArgumentParser(prog="python -m runner.grader.gate", description=__doc__)
    parser.add_argument("problems", nargs="*", help="numbers or slugs; all, if none is given")
    parser.add_argument("--workload", default="smoke")
    chosen = parser.parse_args(arguments)
    listed = [catalog.find(text) for text in chosen.problems] or list(catalog.all_problems())
    n_failing = 0
    for problem in listed:
        checks = list(Gate(problem, workload=chosen.workload).checks())
        broken = [check for check in checks if not check.holds]
        n_failing += bool(broken)
        sys.stdout.write(f"{problem.slug}: {len(checks) - len(broken)} of {len(checks)} hold\n")
        for check in broken:
            sys.stdout.write(f"    {check.name}: {check.found}, wanted {check.wanted}\n")
    sys.stdout.write(f"{len(listed) - n_failing} of {len(listed)} problems pass the gate\n")
    return 1 if n_failing else 0


if __name__ == "__main__":
    sys.exit(main())
