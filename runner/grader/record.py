"""What a grading has found so far, and where its time went."""

import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Work(StrEnum):
    """What a grading's time may go to that is not the harness's own."""

    IMPORTS = "imports"
    KERNEL = "kernel"
    DRAWS = "draws"


@dataclass
class Record:
    """Filled as the grading goes on; a fault leaves it as far as it came.

    `spent_sec` is the parent's wall time: waiting for the child to start and import (and
    importing beside it), waiting for kernel.py to load and for solve (compilation included), and
    drawing inputs, running reference and anchor, and timing eager. What is left of the whole is
    the harness: staging, copying, messages, comparing, deciding.
    """

    stage: str = "start"
    n_correct_draws: int = 0
    error_ratio: float | None = None
    rms_ratio: float | None = None
    kernel_draws_ms: tuple[float, ...] = ()
    eager_draws_ms: tuple[float, ...] = ()
    findings: list[str] = field(default_factory=list)
    environment: dict[str, Any] = field(default_factory=dict)
    log_tail: str = ""
    started: float = field(default_factory=time.monotonic)
    spent_sec: dict[Work, float] = field(default_factory=lambda: dict.fromkeys(Work, 0.0))

    @contextmanager
    def spending(self, work: Work) -> Iterator[None]:
        """Book the time of the block."""
        started = time.monotonic()
        try:
            yield
        finally:
            self.spent_sec[work] += time.monotonic() - started

    def note(self, *, error_ratio: float | None, rms_ratio: float | None) -> None:
        """Keep the largest ratios of all outputs compared; None where a rule gives none."""
        if error_ratio is not None:
            self.error_ratio = max(self.error_ratio or 0.0, error_ratio)
        if rms_ratio is not None:
            self.rms_ratio = max(self.rms_ratio or 0.0, rms_ratio)

    @property
    def elapsed_sec(self) -> float:
        """The whole grading so far."""
        return time.monotonic() - self.started

    @property
    def harness_sec(self) -> float:
        """The part of it that is neither imports, nor the kernel, nor draws."""
        return self.elapsed_sec - sum(self.spent_sec.values())

    @property
    def rounded_spent_sec(self) -> dict[str, float]:
        """Where the rest went, for the verdict."""
        return {work.value: round(spent, 4) for work, spent in self.spent_sec.items()}

    @property
    def kernel_ms(self) -> float | None:
        """The median of the timed draws; None until all of them completed."""
        return statistics.median(self.kernel_draws_ms) if self.kernel_draws_ms else None

    @property
    def eager_ms(self) -> float | None:
        """The eager baseline's, likewise."""
        return statistics.median(self.eager_draws_ms) if self.eager_draws_ms else None
