"""Which trials a run has, in which order, and when a conditioned one may start."""

import pytest

from runner.plan import Source, Step, coordinates, next_step
from runner.protocol import Arm

CONDITIONED = Arm.CUTEDSL_TO_TIRX_SKILL


def test_a_run_has_four_trials_for_each_problem_and_replicate_solos_first() -> None:
    planned = [str(coordinate) for coordinate in coordinates([2, 36], 2)]
    assert len(planned) == 2 * 2 * 4
    assert planned[:5] == [
        "p02_r1_solo_cutedsl",
        "p02_r1_solo_tirx",
        "p02_r1_cutedsl2tirx_skill",
        "p02_r1_tirx2cutedsl_skill",
        "p36_r1_solo_cutedsl",
    ]
    assert len(set(planned)) == len(planned)


def test_a_run_needs_a_replicate() -> None:
    with pytest.raises(ValueError, match="0 replicates"):
        coordinates([2], 0)


def test_a_solo_runs_at_once() -> None:
    assert next_step(Arm.SOLO_TIRX, {}) is Step.RUN


@pytest.mark.parametrize("sources", [{}, {Arm.SOLO_CUTEDSL: Source(graded=False)}])
def test_a_conditioned_trial_waits_for_its_source(sources: dict[Arm, Source]) -> None:
    assert next_step(CONDITIONED, sources) is Step.WAIT


def test_the_other_solo_is_not_its_source() -> None:
    assert next_step(CONDITIONED, {Arm.SOLO_TIRX: Source(True, "a skill")}) is Step.WAIT


def test_a_graded_source_with_a_skill_sets_it_free() -> None:
    assert next_step(CONDITIONED, {Arm.SOLO_CUTEDSL: Source(True, "a skill")}) is Step.RUN


@pytest.mark.parametrize("text", [None, "", " \n\t"])
def test_a_source_without_a_skill_leaves_nothing_to_transfer(text: str | None) -> None:
    assert next_step(CONDITIONED, {Arm.SOLO_CUTEDSL: Source(True, text)}) is Step.SKIP
