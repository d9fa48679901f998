"""Adding up what the turns of an attempt used."""

from runner.endpoint import TurnUsage
from runner.messages import Usage


class UsageTotal:
    """Sums over turns; one turn that did not report a count makes its sum unknown."""

    def __init__(self) -> None:
        self._turns: list[TurnUsage] = []

    @property
    def n_turns(self) -> int:
        """Turns that the model answered."""
        return len(self._turns)

    def add(self, usage: TurnUsage) -> None:
        """Count one more turn."""
        self._turns.append(usage)

    def total(self, *, wall_sec: float) -> Usage:
        """Return the sums; all are unknown before the first turn."""
        return Usage(
            n_turns=self.n_turns,
            n_input_tokens=_sum([turn.n_input for turn in self._turns]),
            n_cached_tokens=_sum([turn.n_cached for turn in self._turns]),
            n_output_tokens=_sum([turn.n_output for turn in self._turns]),
            wall_sec=wall_sec,
        )


def _sum(counts: list[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if counts and len(known) == len(counts) else None
