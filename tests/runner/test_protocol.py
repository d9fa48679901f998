"""The protocol's words: which arm writes in which DSL, receives what, and is compared with what."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.protocol import Arm, Coordinate, Direction, Dsl, Outcome


def test_a_direction_knows_its_ends_and_its_reverse() -> None:
    direction = Direction.CUTEDSL_TO_TIRX
    assert (direction.source, direction.target) == (Dsl.CUTEDSL, Dsl.TIRX)
    assert direction.reverse is Direction.TIRX_TO_CUTEDSL
    assert direction.label == "CuTe DSL → TIRx"


@pytest.mark.parametrize("direction", list(Direction))
def test_a_direction_reversed_twice_is_itself(direction: Direction) -> None:
    assert direction.reverse.reverse is direction


def test_a_conditioned_arm_names_its_source_and_its_baseline() -> None:
    arm = Arm.conditioned(Direction.CUTEDSL_TO_TIRX)
    assert arm is Arm.CUTEDSL_TO_TIRX_SKILL
    assert arm.dsl is Dsl.TIRX
    assert arm.source is Arm.SOLO_CUTEDSL
    assert arm.baseline is Arm.SOLO_TIRX
    assert arm.label == "TIRx with the skill from CuTe DSL"


@pytest.mark.parametrize("dsl", list(Dsl))
def test_a_solo_arm_receives_nothing_and_is_compared_with_nothing(dsl: Dsl) -> None:
    arm = Arm.solo(dsl)
    assert arm.dsl is dsl
    assert (arm.direction, arm.source, arm.baseline) == (None, None, None)
    assert arm.label == f"solo in {dsl.label}"


@given(
    st.builds(
        Coordinate,
        problem=st.integers(1, 99),
        replicate=st.integers(1, 1_000),
        arm=st.sampled_from(list(Arm)),
    )
)
def test_a_coordinate_survives_being_written_and_read(coordinate: Coordinate) -> None:
    assert Coordinate.parse(str(coordinate)) == coordinate


def test_a_coordinate_is_written_as_the_protocol_says() -> None:
    assert str(Coordinate(32, 1, Arm.SOLO_CUTEDSL)) == "p32_r1_solo_cutedsl"


@pytest.mark.parametrize(
    "text", ["", "p32_r1", "p3_r1_solo_cutedsl", "p32_r1_solo_triton", "p32_r1_solo_cutedsl ", "x"]
)
def test_what_is_no_coordinate_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="p32_r1_solo_cutedsl"):
        Coordinate.parse(text)


def test_only_what_entered_evaluation_costs_a_submission() -> None:
    free = {outcome for outcome in Outcome if not outcome.counts_as_submission}
    assert free == {Outcome.REFUSED, Outcome.INFRASTRUCTURE}
