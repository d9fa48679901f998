"""The grid of problems × directions that entry and problem pages share."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from leaderboard.models import Entry, Problem, Transfer, Trial
from leaderboard.views import marks
from runner.protocol import Arm, Direction, Dsl


@dataclass(frozen=True)
class Cell:
    """One transfer as a place in the grid."""

    transfer: Transfer
    mark: marks.Mark

    @property
    def is_rejected(self) -> bool:
        """Whether it is resolved and yet does not count."""
        return self.transfer.comparison is not None and not self.transfer.counts


@dataclass(frozen=True)
class Solo:
    """One solo trial as a place in the grid."""

    trial: Trial
    mark: marks.Mark


@dataclass(frozen=True)
class Line:
    """One replicate of one entry on one problem: a solo per DSL, a cell per direction."""

    entry: Entry
    problem: Problem
    replicate: int
    device: str
    solos: list[Solo]
    cells: list[Cell]


def lines(transfers: Iterable[Transfer]) -> list[Line]:
    """Return one line per entry, problem and replicate that has both directions planned."""
    ordered = sorted(transfers, key=_place)
    grouped = (list(group) for _place_of, group in groupby(ordered, key=_place))
    return [_line(group) for group in grouped]


def _place(transfer: Transfer) -> tuple[str, int, int]:
    trial = transfer.conditioned
    return trial.entry.name, trial.problem_id, trial.replicate


def _line(group: Sequence[Transfer]) -> Line:
    trial = group[0].conditioned
    by_direction = {item.direction: item for item in group}
    solos = {item.solo.arm: item.solo for item in group} | {
        item.source.arm: item.source for item in group
    }
    return Line(
        entry=trial.entry,
        problem=trial.problem,
        replicate=trial.replicate,
        device=trial.run.device,
        solos=[
            Solo(solos[Arm.solo(dsl)], marks.of_trial(solos[Arm.solo(dsl)]))
            for dsl in Dsl
            if Arm.solo(dsl) in solos
        ],
        cells=[
            Cell(by_direction[item], marks.of_transfer(by_direction[item]))
            for item in Direction
            if item in by_direction
        ],
    )
