"""Whether a result has the reference's containers, shapes, dtypes and fresh memory."""

from typing import Any

from runner.grader import forms
from runner.grader.faults import KernelError
from runner.messages import Mismatch
from runner.protocol import Outcome


def check(found: Any, expected: forms.Form) -> None:
    """Compare the form that the child tells with the reference's.

    Raises:
        KernelError: wrong_structure, wrong_dtype or wrong_shape at the first place that differs;
            tampering where the form is none that our child writes.
    """
    try:
        _check(found, expected, "output")
    except (KeyError, TypeError, AttributeError) as error:
        raise KernelError(
            Outcome.TAMPERING, f"the result's description is malformed: {error!r}"
        ) from error


def check_fresh(found: forms.Form, expected: forms.Form) -> None:
    """Refuse outputs in the memory of an input or of each other, where the reference's are not.

    Raises:
        KernelError: wrong_structure; tampering where the description is malformed.
    """
    pairs = zip(
        forms.paths(expected), forms.tensors_of(found), forms.tensors_of(expected), strict=True
    )
    for path, ours, theirs in pairs:
        for kind in ("inputs", "outputs"):
            if not isinstance(ours.get(kind), list):
                raise KernelError(Outcome.TAMPERING, "the result's description is malformed")
            if extra := [number for number in ours[kind] if number not in theirs[kind]]:
                raise _fault(
                    Outcome.WRONG_STRUCTURE,
                    path,
                    f"shares memory with {kind[:-1]} {extra[0]}; return it in memory of its own",
                )


def _check(found: Any, expected: forms.Form, path: str) -> None:
    if _name(found) != _name(expected):
        raise _fault(Outcome.WRONG_STRUCTURE, path, f"is {_name(found)}; return {_name(expected)}")
    if expected["kind"] == "tensor":
        _check_tensor(found, expected, path)
        return
    n_found, n_expected = len(found["items"]), len(expected["items"])
    if n_found != n_expected:
        raise _fault(
            Outcome.WRONG_STRUCTURE, path, f"has {n_found} items; the reference's has {n_expected}"
        )
    keys = expected.get("keys") or list(range(n_expected))
    if expected["kind"] == "dict" and found["keys"] != expected["keys"]:
        raise _fault(
            Outcome.WRONG_STRUCTURE, path, f"has the keys {found['keys']}; return {keys} in order"
        )
    for key, ours, theirs in zip(keys, found["items"], expected["items"], strict=True):
        _check(ours, theirs, f"{path}[{key}]")


def _check_tensor(found: forms.Form, expected: forms.Form, path: str) -> None:
    outcomes = {
        "device": Outcome.WRONG_STRUCTURE,
        "dtype": Outcome.WRONG_DTYPE,
        "shape": Outcome.WRONG_SHAPE,
    }
    for fact, outcome in outcomes.items():
        if found[fact] != expected[fact]:
            raise _fault(outcome, path, f"has {fact} {found[fact]}; return {expected[fact]}")


def _name(form: forms.Form) -> str:
    kind = str(form["kind"])
    names = {"tuple": "a tuple", "list": "a list", "dict": "a dict", "tensor": "a tensor"}
    return names.get(kind, f"of type {form.get('type', '?')!s}")


def _fault(outcome: Outcome, path: str, reason: str) -> KernelError:
    return KernelError(outcome, f"{path} {reason}", Mismatch(path=path, reason=reason))
