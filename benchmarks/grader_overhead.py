"""Where the time of one grading goes, per DSL: python benchmarks/grader_overhead.py [--device cpu].

Grades the honest kernels of tests/runner/adversarial by the command line, as an attempt does, and
prints the median over repeats. `harness` is the verdict's harness_sec: what is neither imports
(torch and the DSL, in the child and beside it in the parent), nor the kernel (loading it, which
compiles, and every call), nor draws (inputs, reference, anchor, eager). The bar is 0.5 s.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
KERNELS = ROOT / "tests" / "runner" / "adversarial"
COLUMNS = ("total", "imports", "kernel", "draws", "harness", "process")
BAR_SEC = 0.5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; seconds, medians")
    print(f"{'dsl':8}" + "".join(f"{column:>10}" for column in COLUMNS))
    for dsl in ("cutedsl", "tirx"):
        rows = [measure(dsl) for _ in range(arguments.repeats)]
        medians = {column: statistics.median(row[column] for row in rows) for column in COLUMNS}
        print(f"{dsl:8}" + "".join(f"{medians[column]:10.3f}" for column in COLUMNS))
        held = "holds" if medians["harness"] < BAR_SEC else "is MISSED"
        print(f"{'':8}the bar of {BAR_SEC} s {held}")


def measure(dsl: str) -> dict[str, float]:
    """Grade once; `process` is the wall time of the whole command, its interpreter included."""
    command = [sys.executable, "-m", "runner.grader", "36", dsl, KERNELS / f"honest_{dsl}.py"]
    started = time.perf_counter()
    finished = subprocess.run(
        [*command, "--device", "cpu", "--json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    process_sec = time.perf_counter() - started
    if finished.returncode != 0:
        sys.exit(f"grading {dsl} failed: {finished.stderr or finished.stdout}")
    verdict = json.loads(finished.stdout)
    spent = verdict["environment"]["spent_sec"]
    return {
        "total": verdict["elapsed_sec"],
        "harness": verdict["harness_sec"],
        "process": process_sec,
        **spent,
    }


if __name__ == "__main__":
    main()
