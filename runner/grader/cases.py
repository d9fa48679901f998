"""One problem at one workload on one device: its draws, its reference and its anchor."""

import importlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from problems.catalog import Problem
from problems.tolerance import CodeSteps, Default, Rule, Tolerance
from runner.grader import forms
from runner.grader.accuracy import Truth
from runner.grader.faults import HostError

_UPCAST = (torch.float32, torch.float16, torch.bfloat16)


@dataclass(frozen=True)
class Answer:
    """What a run of the reference gave.

    `tensors` are its outputs, depth first, then the inputs it changed in place, in the order of
    MUTATES; `form` describes the outputs alone.
    """

    form: forms.Form
    tensors: tuple[torch.Tensor, ...]


class Case:
    """A problem's module, asked for draws of one workload."""

    def __init__(self, problem: Problem, *, workload: str, device: str) -> None:
        self._module = importlib.import_module(problem.module)
        self._workload = workload
        self._device = device
        self._tolerance: Tolerance | None = getattr(self._module, "TOLERANCE", None)
        self.mutates: tuple[int, ...] = getattr(self._module, "MUTATES", ())

    def draw(self) -> list[Any]:
        """Draw inputs from a new seed of the operating system's, which is then forgotten."""
        torch.manual_seed(secrets.randbits(63))
        inputs: list[Any] = self._module.make_inputs(self._workload, self._device)
        return inputs

    def reference(self, inputs: Sequence[Any]) -> Answer:
        """Run the reference at the inputs' own dtypes; the inputs stay as they are."""
        return self.answer(self.private(inputs))

    def answer(self, inputs: Sequence[Any], result: Any = None) -> Answer:
        """Put together what the reference made of `inputs`, which it may change.

        Args:
            inputs: as `private` gave them.
            result: what the reference returned on them; None to call it now.
        """
        if result is None:
            result = self.eager(*inputs)
        form, leaves = forms.describe(result, inputs)
        return Answer(form, (*leaves, *(inputs[number] for number in self.mutates)))

    @property
    def eager(self) -> Callable[..., Any]:
        """The reference itself, to be timed."""
        reference: Callable[..., Any] = self._module.reference
        return reference

    def private(self, inputs: Sequence[Any]) -> list[Any]:
        """Return the inputs with copies of those that the reference changes."""
        return [
            value.clone() if number in self.mutates else value
            for number, value in enumerate(inputs)
        ]

    def truths(self, inputs: Sequence[Any], expected: Answer) -> tuple[Truth, ...]:
        """Return the truth of every tensor of an answer, in its order."""
        anchors = self._anchor(inputs, expected)
        truths = []
        for output, (ours, anchor) in enumerate(zip(expected.tensors, anchors, strict=True)):
            is_coded = isinstance(self.rule(output, expected), CodeSteps)
            target = anchor if is_coded or ours.dtype.is_floating_point else ours
            changed = self._changed(output, expected)
            truths.append(Truth(ours, target, None if changed is None else inputs[changed]))
        return tuple(truths)

    def rule(self, output: int, answer: Answer) -> Rule:
        """Return the rule of tensor number `output` of an answer.

        A changed input is judged like the output that is the very same memory, if there is one.
        """
        n_outputs = len(answer.tensors) - len(self.mutates)
        if output >= n_outputs:
            changed = self.mutates[output - n_outputs]
            leaves = forms.tensors_of(answer.form)
            same = [i for i, leaf in enumerate(leaves) if changed in leaf["inputs"]]
            if not same:
                return Default()
            output = same[0]
        return self._tolerance.rule(output) if self._tolerance else Default()

    def path(self, output: int, answer: Answer) -> str:
        """Return how to call tensor number `output` of an answer in a message."""
        n_outputs = len(answer.tensors) - len(self.mutates)
        if output >= n_outputs:
            return f"inputs[{self.mutates[output - n_outputs]}] (changed in place)"
        return forms.paths(answer.form)[output]

    def _changed(self, output: int, answer: Answer) -> int | None:
        """Return which input, changed in place, a tensor of an answer is; None if none."""
        leaves = forms.tensors_of(answer.form)
        if output >= len(leaves):
            return self.mutates[output - len(leaves)]
        return next((n for n in self.mutates if n in leaves[output]["inputs"]), None)

    def _anchor(self, inputs: Sequence[Any], expected: Answer) -> tuple[torch.Tensor, ...]:
        if not any(_floats(value) for value in inputs):
            return expected.tensors
        if own := getattr(self._module, "anchor", None):
            return self.answer(inputs, own(*inputs)).tensors
        wide = [value.double() if _floats(value) else value for value in self.private(inputs)]
        anchors = self.answer(wide).tensors
        for ours, anchor in zip(expected.tensors, anchors, strict=True):
            if ours.shape != anchor.shape:
                raise HostError(
                    f"the reference gives {tuple(ours.shape)}, but {tuple(anchor.shape)} in float64"
                )
        return anchors


def set_numerics() -> None:
    """Make the reference true float32: no TF32, no reduced-precision accumulation."""
    torch.set_float32_matmul_precision("highest")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False


def _floats(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype in _UPCAST
