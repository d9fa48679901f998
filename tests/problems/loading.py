"""Problem modules by number, and inputs made the way the grader makes them."""

import importlib
from contextlib import suppress
from typing import Any

import torch
from torch._subclasses import FakeTensorMode

from problems import catalog

# A held-out workload with more input than this is the GPU's work.
CPU_LIMIT_BYTES = 4_000_000


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
    """Say whether inputs and outputs fit CPU_LIMIT_BYTES, as far as can be told without values."""
    # Code that looks at values cannot be run without them.
    try:
        with FakeTensorMode():
            inputs = load(number).make_inputs(workload, "cpu")
    except Exception:
        return False
    n_bytes = sum(item.nbytes for item in inputs if isinstance(item, torch.Tensor))
    with suppress(Exception), FakeTensorMode():
        outputs = tensors(load(number).reference(*load(number).make_inputs(workload, "cpu")))
        n_bytes += sum(output.nbytes for output in outputs)
    return n_bytes <= CPU_LIMIT_BYTES
