"""One call of the kernel, seen from the parent: inputs out, outputs back, nothing believed."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from runner.grader import blocks, forms, structure, wire
from runner.grader.faults import HostError, KernelError
from runner.grader.session import Returned, Session
from runner.protocol import Outcome


class Handover:
    """The shared memory of one call: copies of the inputs, and room for the outputs."""

    def __init__(self, inputs: Sequence[Any], form: forms.Form, *, device: str) -> None:
        self._device = device
        self._blocks: list[blocks.Block] = []
        self._inputs = inputs
        self._held: list[torch.Tensor | None] = []
        self._outputs: list[torch.Tensor] = []
        try:
            self.input_specs = [self._give(value, number) for number, value in enumerate(inputs)]
            self.output_specs = [self._make_room(leaf) for leaf in forms.tensors_of(form)]
        except (OSError, MemoryError, RuntimeError) as error:
            self.close()
            raise HostError(f"no room to hand tensors over: {error}") from error
        if device == "cuda":
            torch.cuda.synchronize()

    @property
    def fds(self) -> list[int]:
        """The descriptors to send, in the order of the inputs, then of the outputs."""
        return [block.fd for block in self._blocks if block.fd is not None]

    def changed(self, *, but: Sequence[int]) -> int | None:
        """Return the first input whose bytes are no longer those handed out, `but` these."""
        for number, (held, ours) in enumerate(zip(self._held, self._inputs, strict=True)):
            if held is None or number in but:
                continue
            if not torch.equal(_bytes_of(held), _bytes_of(ours)):
                return number
        return None

    def take(self, changed_inputs: Sequence[int]) -> tuple[torch.Tensor, ...]:
        """Return copies of the outputs and of these inputs: the child may still hold the memory."""
        taken = [output.clone() for output in self._outputs]
        for number in changed_inputs:
            held = self._held[number]
            if held is None:
                raise HostError(f"MUTATES names input {number}, which is no tensor")
            taken.append(held.clone())
        return tuple(taken)

    def close(self) -> None:
        """Give the memory back."""
        self._held, self._outputs = [], []
        for block in self._blocks:
            block.close()
        self._blocks = []

    def _give(self, value: Any, number: int) -> wire.Message:
        if not isinstance(value, torch.Tensor):
            self._held.append(None)
            return {"kind": "scalar", "value": value}
        if not value.is_contiguous():
            raise HostError(f"input {number} is not contiguous; make_inputs must return it so")
        held, spec = self._share(value.dtype, list(value.shape))
        held.copy_(value)
        self._held.append(held)
        return spec

    def _make_room(self, leaf: forms.Form) -> wire.Message:
        output, spec = self._share(getattr(torch, leaf["dtype"]), leaf["shape"])
        self._outputs.append(output)
        return spec

    def _share(self, dtype: torch.dtype, shape: list[int]) -> tuple[torch.Tensor, wire.Message]:
        n_bytes = dtype.itemsize
        for size in shape:
            n_bytes *= size
        block = blocks.create(n_bytes, device=self._device)
        self._blocks.append(block)
        name = forms.dtype_name(dtype)
        spec = {"kind": "tensor", "dtype": name, "shape": shape, "ticket": block.ticket}
        return blocks.as_tensor(block, dtype=dtype, shape=shape), spec


def call(
    session: Session,
    inputs: Sequence[Any],
    form: forms.Form,
    *,
    mutates: Sequence[int],
    device: str,
) -> tuple[Returned, tuple[torch.Tensor, ...]]:
    """Have the kernel called once; return its outputs, then the inputs that it may change.

    Args:
        form: what the reference's outputs look like; values are for the caller to judge.

    Raises:
        KernelError: the call failed, the result's structure is wrong, or an input was changed.
        HostError: there was no room for the tensors.
    """
    with _held(session, inputs, form, device=device) as handover:
        returned = session.go()
        structure.check(returned.form, form)
        if not returned.written:
            raise KernelError(Outcome.TAMPERING, "the child says it wrote no outputs")
        changed = handover.changed(but=mutates)
        if changed is not None:
            raise KernelError(
                Outcome.MUTATED_INPUT, f"solve changed input {changed}; work on a copy of it"
            )
        return returned, handover.take(mutates)


def null_call(
    session: Session, inputs: Sequence[Any], form: forms.Form, *, device: str
) -> Returned:
    """Have a call made that computes nothing, by the very way of a real one, and say what it took.

    Only before a kernel is loaded.

    Raises:
        KernelError: the child died.
        HostError: there was no room for the tensors.
    """
    with _held(session, inputs, form, device=device):
        return session.go()


@contextmanager
def _held(
    session: Session, inputs: Sequence[Any], form: forms.Form, *, device: str
) -> Iterator[Handover]:
    """Hand one call's tensors over, and take the memory back."""
    handover = Handover(inputs, form, device=device)
    try:
        session.hold(handover.input_specs, handover.output_specs, handover.fds)
        yield handover
        if device == "cuda":
            session.release()
    finally:
        handover.close()


def _bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.reshape(-1).view(torch.uint8)
