"""What a result is made of, as plain JSON: containers, tensors, and whose memory they share."""

from collections.abc import Sequence
from typing import Any

import torch

DEPTH_LIMIT = 8
LEAF_LIMIT = 128

Form = dict[str, Any]


def describe(value: Any, inputs: Sequence[Any]) -> tuple[Form, list[torch.Tensor]]:
    """Return the form of a result and its tensors, depth first.

    A form is `{"kind": "tuple" | "list", "items": [...]}`, `{"kind": "dict", "keys": [...],
    "items": [...]}`, `{"kind": "other", "type": name}`, or a tensor's `{"kind": "tensor",
    "dtype", "shape", "device", "inputs", "outputs"}`, the last two being the numbers of the
    inputs and of the earlier output tensors whose memory it overlaps.
    """
    leaves: list[torch.Tensor] = []
    form = _form(value, leaves, DEPTH_LIMIT)
    _add_overlaps(form, leaves, inputs)
    return form, leaves


def tensors_of(form: Form) -> list[Form]:
    """Return the tensors of a form, depth first."""
    if form["kind"] == "tensor":
        return [form]
    return [leaf for item in form.get("items", ()) for leaf in tensors_of(item)]


def paths(form: Form, path: str = "output") -> list[str]:
    """Return how to reach each tensor of a form: "output", "output[1]", "output['k']"."""
    if form["kind"] == "tensor":
        return [path]
    keys = form.get("keys") or range(len(form.get("items", ())))
    items = zip(keys, form.get("items", ()), strict=True)
    return [inner for key, item in items for inner in paths(item, f"{path}[{key}]")]


def dtype_name(dtype: torch.dtype) -> str:
    """Return the name by which `getattr(torch, name)` finds the dtype."""
    return str(dtype).removeprefix("torch.")


def _form(value: Any, leaves: list[torch.Tensor], depth: int) -> Form:
    if isinstance(value, torch.Tensor) and len(leaves) < LEAF_LIMIT:
        leaves.append(value)
        return {
            "kind": "tensor",
            "dtype": dtype_name(value.dtype),
            "shape": list(value.shape),
            "device": value.device.type,
        }
    # Exact types: a subclass may lie about its items.
    if depth and type(value) in (tuple, list) and len(value) <= LEAF_LIMIT:
        items = [_form(item, leaves, depth - 1) for item in value]
        return {"kind": type(value).__name__, "items": items}
    if depth and type(value) is dict and len(value) <= LEAF_LIMIT:
        items = [_form(item, leaves, depth - 1) for item in value.values()]
        return {"kind": "dict", "keys": [repr(key)[:80] for key in value], "items": items}
    return {"kind": "other", "type": type(value).__name__[:80]}


def _add_overlaps(form: Form, leaves: list[torch.Tensor], inputs: Sequence[Any]) -> None:
    taken = [_span(value) if isinstance(value, torch.Tensor) else None for value in inputs]
    spans = [_span(leaf) for leaf in leaves]
    for number, leaf in enumerate(tensors_of(form)):
        leaf["inputs"] = [i for i, span in enumerate(taken) if _overlap(span, spans[number])]
        leaf["outputs"] = [
            i for i, span in enumerate(spans[:number]) if _overlap(span, spans[number])
        ]


def _span(tensor: torch.Tensor) -> tuple[int, int] | None:
    """Return the first and the last byte's successor; None for a tensor without elements."""
    if tensor.numel() == 0:
        return None
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    n_elements = 1 + sum((size - 1) * stride for size, stride in steps)
    return tensor.data_ptr(), tensor.data_ptr() + n_elements * tensor.element_size()


def _overlap(first: tuple[int, int] | None, second: tuple[int, int] | None) -> bool:
    if first is None or second is None:
        return False
    return first[0] < second[1] and second[0] < first[1]
