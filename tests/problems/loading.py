"""Problem modules by number, and inputs made the way the grader makes them."""

import importlib
from typing import Any

import torch
from torch._subclasses import FakeTensorMode

from problems import catalog

# A held-out workload with more input than this is the GPU's work.
CPU_LIMIT_BYTES = 4_000_000
# Little input, but a large table of gradients (43) or thousands of steps one after the other.
SLOW_ON_A_CPU = {
    17: ("heldout_2",),
    43: ("heldout_1",),
    66: ("heldout_1",),
    68: ("heldout_1", "heldout_2", "heldout_3"),
    69: ("heldout_1", "heldout_3"),
    71: ("heldout_1", "heldout_2", "heldout_3"),
    74: ("heldout_1", "heldout_3"),
}


def load(number: int) -> Any:
    return importlib.import_module(catalog.find(str(number)).module)


def draw(number: int, workload: str = "smoke", seed: int = 7) -> list[Any]:
    torch.manual_seed(seed)
    inputs: list[Any] = load(number).make_inputs(workload, "cpu")
    return inputs


def upcast(inputs: list[Any]) -> list[Any]:
    """Convert bfloat16, float16 and float32 tensors to float64, as for the anchor."""
    wide = (torch.bfloat16, torch.float16, torch.float32)
    return [
        item.double() if isinstance(item, torch.Tensor) and item.dtype in wide else item
        for item in inputs
    ]


def tensors(result: torch.Tensor | tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    return result if isinstance(result, tuple) else (result,)


def relative_error(actual: torch.Tensor, anchor: torch.Tensor) -> float:
    return float((actual.double() - anchor.double()).norm() / anchor.double().norm())


def is_small(number: int, workload: str) -> bool:
    """Say whether a CPU runs this workload in a moment, without making its inputs."""
    if workload in SLOW_ON_A_CPU.get(number, ()):
        return False
    try:
        with FakeTensorMode():
            inputs = load(number).make_inputs(workload, "cpu")
    # Draws that look at their own values cannot be made without them.
    except Exception:
        return False
    given = [item for item in inputs if isinstance(item, torch.Tensor)]
    return sum(item.numel() * item.element_size() for item in given) <= CPU_LIMIT_BYTES
