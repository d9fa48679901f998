"""Run all demo kernels of one DSL in this process and print, as JSON, what each returned."""

import importlib
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import torch

from problems import catalog
from problems.tolerance import Default, Frobenius, Tolerance

KERNELS = Path(__file__).parents[3] / "runner" / "demo" / "kernels"
SEEDS = (1, 2)


def main(dsl: str) -> None:
    torch.set_num_threads(1)
    files = sorted(KERNELS.glob(f"p*/{dsl}_*.py"))
    found = {name_of(file): judge(file) for file in files}
    silence(dsl)
    for file in files:
        found[name_of(file)]["without_dsl"] = verdict(file, load(file), seed=SEEDS[0])
    print(json.dumps(found))


def name_of(file: Path) -> str:
    return f"{file.parent.name}/{file.stem}"


def judge(file: Path) -> dict[str, Any]:
    """Call one kernel on several draws, so that a second call meets what the first compiled."""
    kernel = load(file)
    return {"draws": [verdict(file, kernel, seed=seed) for seed in SEEDS]}


def verdict(file: Path, kernel: ModuleType, *, seed: int) -> str:
    """Return "right", or what is wrong: an output against the float64 anchor, or an input."""
    problem = importlib.import_module(catalog.find(file.parent.name).module)
    mutated = getattr(problem, "MUTATES", ())
    torch.manual_seed(seed)
    inputs = problem.make_inputs("smoke", "cpu")
    given = copies(inputs)
    expected = outputs_of(problem.reference(*copies(inputs)))
    anchor = outputs_of(problem.reference(*upcast(copies(inputs))))
    actual = outputs_of(kernel.solve(*given))
    for i, (before, after) in enumerate(zip(inputs, given, strict=True)):
        if isinstance(before, torch.Tensor) and i not in mutated and not same(before, after):
            return f"input {i} was changed"
    rules = getattr(problem, "TOLERANCE", Tolerance((Default(),) * len(expected))).rules
    if len(actual) != len(expected):
        return f"{len(actual)} outputs instead of {len(expected)}"
    for i, rule in enumerate(rules):
        if wrong := mismatch(actual[i], expected[i], anchor[i], rule):
            return f"output {i}: {wrong}"
    return "right"


def mismatch(
    actual: torch.Tensor, expected: torch.Tensor, anchor: torch.Tensor, rule: object
) -> str | None:
    if (actual.shape, actual.dtype) != (expected.shape, expected.dtype):
        return f"{actual.dtype} {tuple(actual.shape)}"
    if not actual.is_floating_point():
        return None if torch.equal(actual, expected) else "integers differ"
    if isinstance(rule, Frobenius):
        error = float((actual.double() - anchor).norm() / anchor.norm())
        return None if error <= rule.limit else f"relative error {error}"
    for size, step in ((largest, 1.0), (root_mean_square, 12**-0.5)):
        own = size(expected.double() - anchor)
        allowed = 3 * max(own, torch.finfo(expected.dtype).eps * step * size(anchor))
        if not (error := size(actual.double() - anchor)) <= allowed:
            return f"{size.__name__} error {error}, allowed {allowed}"
    return None


def largest(difference: torch.Tensor) -> float:
    return float(difference.abs().max())


def root_mean_square(difference: torch.Tensor) -> float:
    return float(difference.square().mean().sqrt())


def silence(dsl: str) -> None:
    """From here on everything that is compiled does nothing, and fresh memory is zero."""

    def nothing(*_arguments: Any) -> None:
        return None

    if dsl == "cutedsl":
        importlib.import_module("cutlass.cute").compile = lambda *_args, **_options: nothing
    else:
        compiled = SimpleNamespace(mod={"main": nothing})
        importlib.import_module("tvm").compile = lambda *_args, **_options: compiled
    torch.empty = torch.zeros
    torch.empty_like = torch.zeros_like


def load(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"{file.parent.name}_{file.stem}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def copies(inputs: list[Any]) -> list[Any]:
    return [item.clone() if isinstance(item, torch.Tensor) else item for item in inputs]


def upcast(inputs: list[Any]) -> list[Any]:
    wide = (torch.bfloat16, torch.float32)
    return [
        item.double() if isinstance(item, torch.Tensor) and item.dtype in wide else item
        for item in inputs
    ]


def outputs_of(result: Any) -> tuple[torch.Tensor, ...]:
    return result if isinstance(result, tuple) else (result,)


def same(left: torch.Tensor, right: torch.Tensor) -> bool:
    return torch.equal(left.view(torch.uint8), right.view(torch.uint8))


if __name__ == "__main__":
    main(sys.argv[1])
