"""An attempt's wall clock: what is left of it, and when to warn the model."""

from collections.abc import Callable

_LAST_WARNINGS_SEC = (300.0, 60.0)


class Budget:
    """Seconds since the attempt began, against its limit; the clock counts seconds."""

    def __init__(self, budget_sec: float, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._budget_sec = budget_sec
        self._began_at = clock()
        half_sec = budget_sec / 2
        # A warning that would come before the half is of no use: the instruction states the whole.
        self._warn_at_left_sec = [half_sec, *(at for at in _LAST_WARNINGS_SEC if at < half_sec)]

    @property
    def elapsed_sec(self) -> float:
        """Seconds since the attempt began."""
        return self._clock() - self._began_at

    @property
    def left_sec(self) -> float:
        """Seconds until it must end; below zero when it is over."""
        return self._budget_sec - self.elapsed_sec

    @property
    def is_over(self) -> bool:
        """Whether nothing is left."""
        return self.left_sec <= 0

    def warning(self) -> str | None:
        """Return a warning when one has become due since the last call, the latest one alone."""
        left_sec = self.left_sec
        due = [at for at in self._warn_at_left_sec if left_sec <= at]
        if not due:
            return None
        self._warn_at_left_sec = [at for at in self._warn_at_left_sec if left_sec > at]
        if left_sec >= 120:
            return f"{left_sec / 60:.0f} minutes of the attempt are left."
        return (
            f"{max(left_sec, 0):.0f} seconds of the attempt are left: see that kernel.py and"
            " SKILL.md are as you want them."
        )
