"""Which trials of a replicate run next: solos first, then what a finished source sets free."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from runner.protocol import Arm, Coordinate, Direction, Dsl


class Step(StrEnum):
    """What the plan says about one trial that has not run."""

    RUN = "run"
    WAIT = "wait"
    SKIP = "skip"


@dataclass(frozen=True)
class Source:
    """A solo trial that can hand on a skill: whether it is graded, and the text it wrote."""

    graded: bool
    skill: str | None = None


def coordinates(problems: Iterable[int], n_replicates: int) -> list[Coordinate]:
    """Return every trial of a run, one problem after the other, solos before conditioned arms.

    Raises:
        ValueError: fewer than one replicate.
    """
    if n_replicates < 1:
        raise ValueError(f"{n_replicates} replicates: a run needs at least 1")
    arms = [Arm.solo(dsl) for dsl in Dsl] + [Arm.conditioned(direction) for direction in Direction]
    return [
        Coordinate(problem, replicate, arm)
        for replicate in range(1, n_replicates + 1)
        for problem in problems
        for arm in arms
    ]


def next_step(arm: Arm, sources: Mapping[Arm, Source]) -> Step:
    """Say whether a trial may run, given the solos of its problem and replicate.

    A conditioned trial runs once its source is graded, whether or not the source passed; when the
    source wrote no skill there is nothing to transfer and the trial is skipped.
    """
    if arm.source is None:
        return Step.RUN
    source = sources.get(arm.source)
    if source is None or not source.graded:
        return Step.WAIT
    return Step.RUN if source.skill and source.skill.strip() else Step.SKIP
