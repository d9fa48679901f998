"""Run every full workload once on a GPU: inputs, reference, anchor, eager median, peak memory.

`python benchmarks/full_workloads.py OUT.json [NUMBER ...]` writes after each problem, so that an
interrupted run keeps what it has. Without a CUDA device it says so and does nothing.
"""

import importlib
import json
import statistics
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from problems import catalog
from runner.grader import clock, environment
from runner.grader.cases import Case, set_numerics

WARM_UPS = 3
MOST_DRAWS = 20
PATIENCE_SEC = 4.0
GIB = 1 << 30


def main(arguments: list[str]) -> int:
    if not torch.cuda.is_available():
        print("no CUDA device here: full workloads are measured where there is one")
        return 0
    if not arguments:
        print("usage: full_workloads.py OUT.json [NUMBER ...]")
        return 2
    set_numerics()
    target, *wanted = arguments
    listed = [catalog.find(text) for text in wanted] or list(catalog.all_problems())
    document: dict[str, Any] = {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "torch": torch.__version__,
        "card": environment.card(),
        "host": environment.host(),
        "problems": {},
    }
    for problem in listed:
        document["problems"][problem.slug] = row = measured(problem)
        Path(target).write_text(json.dumps(document, indent=1))
        print(problem.slug, json.dumps(row), flush=True)
    return 0


def measured(problem: catalog.Problem) -> dict[str, Any]:
    """Return the problem's figures, or why it could not be run."""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    try:
        found = figures(problem)
    # Whatever is wrong with one problem must not cost the figures of the others.
    except Exception as error:
        found = {"error": f"{type(error).__name__}: {error}"[:500]}
    found["peak_gib"] = round(torch.cuda.max_memory_allocated() / GIB, 2)
    return found


def figures(problem: catalog.Problem) -> dict[str, Any]:
    case = Case(problem, workload="full", device="cuda")
    module = importlib.import_module(problem.module)
    inputs, inputs_ms = timed(case.draw)
    given = [value for value in inputs if isinstance(value, torch.Tensor)]
    reference_ms, anchor_ms, has_no_nan = truth_of(case, inputs)
    draws = eager_draws(case, inputs)
    return {
        "fingerprint": problem.fingerprint,
        "inputs_gib": round(sum(x.numel() * x.element_size() for x in given) / GIB, 3),
        "inputs_ms": inputs_ms,
        "reference_ms": reference_ms,
        "anchor_ms": anchor_ms,
        "anchor_is_chunked": hasattr(module, "anchor"),
        "has_no_nan": has_no_nan,
        "eager_ms": round(statistics.median(draws), 4),
        "n_eager_draws": len(draws),
    }


def truth_of(case: Case, inputs: list[Any]) -> tuple[float, float, bool]:
    """Return what reference and anchor took, in ms, and whether the anchor has no NaN."""
    expected, reference_ms = timed(lambda: case.reference(inputs))
    truths, anchor_ms = timed(lambda: case.truths(inputs, expected))
    return reference_ms, anchor_ms, not any(torch.isnan(truth.anchor).any() for truth in truths)


def eager_draws(case: Case, inputs: list[Any]) -> list[float]:
    """Time the reference on one draw's inputs, fewer times where it is slow."""
    draws = []
    began = time.monotonic()
    for number in range(WARM_UPS + MOST_DRAWS):
        copies = case.private(inputs)
        result, spent_ns = clock.timed_call(case.eager, copies, device="cuda")
        del result, copies
        if number >= WARM_UPS or spent_ns > 1e9:
            draws.append(spent_ns / 1e6)
        if draws and time.monotonic() - began > PATIENCE_SEC:
            break
    return draws


def timed(step: Any) -> tuple[Any, float]:
    torch.cuda.synchronize()
    began = time.perf_counter()
    result = step()
    torch.cuda.synchronize()
    return result, round((time.perf_counter() - began) * 1e3, 2)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
