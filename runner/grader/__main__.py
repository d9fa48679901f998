"""The grader's command line: one kernel in, one verdict as JSON out."""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import NoReturn

from runner.grader import legality, limits, referee
from runner.grader.referee import BadOrderError
from runner.messages import GradeOrder, Verdict
from runner.protocol import Dsl, Outcome

PASSED, NOT_PASSED, BAD_USAGE, INFRASTRUCTURE = range(4)


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence, without the usage."""

    def error(self, message: str) -> NoReturn:
        raise BadOrderError(f"{message}; see --help")


def main(arguments: list[str] | None = None) -> int:
    """Grade one kernel and return the exit status.

    0 passed, 1 not passed, 2 bad usage (one sentence on stderr, no verdict), 3 infrastructure.
    """
    try:
        graded, is_compact = _graded(arguments)
    except BadOrderError as error:
        print(error, file=sys.stderr)  # noqa: T201  (a command's answer)
        return BAD_USAGE
    indent = None if is_compact else 2
    print(json.dumps(graded.to_json(), indent=indent))  # noqa: T201  (a command's answer)
    if graded.outcome is Outcome.INFRASTRUCTURE:
        return INFRASTRUCTURE
    return PASSED if graded.passed else NOT_PASSED


def _graded(arguments: list[str] | None) -> tuple[Verdict, bool]:
    asked = _parser().parse_args(arguments)
    device = asked.device or ("cuda" if Path("/dev/nvidiactl").exists() else "cpu")
    workload = asked.workload or ("full" if device == "cuda" else "smoke")
    order = GradeOrder(asked.problem, asked.dsl, "", device, workload)
    referee.understand(order)
    limit_sec = _limit_sec()
    try:
        kernel, reading = legality.read_file(asked.kernel)
    except OSError as error:
        raise BadOrderError(
            f"the kernel {asked.kernel} cannot be read: {error.strerror}; name a file"
        ) from error
    if reading.outcome is not None:
        return referee.refuse(order, reading), asked.json
    order = GradeOrder(asked.problem, asked.dsl, kernel, device, workload)
    return referee.grade(order, limit_sec=limit_sec), asked.json


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m runner.grader", description=__doc__)
    parser.add_argument("problem", help="a number (36) or a slug")
    parser.add_argument("dsl", help=", ".join(Dsl))
    parser.add_argument("kernel", type=Path, help="the kernel's file")
    parser.add_argument("--device", help="cpu or cuda; by default cuda where there is one")
    parser.add_argument(
        "--workload",
        help="smoke, full, heldout (all of them) or heldout_<k>; by default full on cuda, smoke"
        " on cpu",
    )
    parser.add_argument("--json", action="store_true", help="the verdict on one line")
    return parser


def _limit_sec() -> float:
    """Return the time limit, which MKB_GRADING_SEC may lower."""
    text = os.environ.get("MKB_GRADING_SEC", "")
    if not text:
        return limits.LIMIT_SEC
    try:
        limit_sec = float(text)
    except ValueError:
        limit_sec = -1.0
    if not 0 < limit_sec <= limits.LIMIT_SEC:
        raise BadOrderError(
            f"MKB_GRADING_SEC={text!r} must be a number of seconds above 0 and at most"
            f" {limits.LIMIT_SEC:g}"
        )
    return limit_sec


if __name__ == "__main__":
    sys.exit(main())
