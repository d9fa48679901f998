"""Transfers: three trials read as one, resolved or not, in a constant number of queries."""

import pytest
from django.db import IntegrityError, transaction

from leaderboard.models import Trial, find_transfer, transfers_among, transfers_of
from leaderboard.stats.paired import Effect
from leaderboard.stats.tiers import Standing
from runner.protocol import Arm, Direction, Outcome
from tests.leaderboard import factories

pytestmark = pytest.mark.django_db
THERE, BACK = Direction.CUTEDSL_TO_TIRX, Direction.TIRX_TO_CUTEDSL


def one(results=(2.0, 1.0, 1.5, 1.0), direction: Direction = THERE):
    factories.make_replicate(factories.make_run(), factories.make_problem(), results)
    return find_transfer("model-a", "02_problem", direction, 1)


def test_a_direction_takes_its_skill_from_one_solo_and_is_measured_against_the_other() -> None:
    transfer = one()
    assert transfer.source.arm == Arm.SOLO_CUTEDSL
    assert transfer.solo.arm == Arm.SOLO_TIRX
    assert transfer.conditioned.arm == Arm.CUTEDSL_TO_TIRX_SKILL
    assert transfer.direction == THERE
    assert (transfer.reverse, transfer.reverse_arm) == (BACK, Arm.TIRX_TO_CUTEDSL_SKILL)


def test_a_resolved_transfer_has_ratio_effect_and_standing() -> None:
    transfer = one((2.0, 1.0, 1.5, 1.0))
    assert transfer.ratio == pytest.approx(1.5)
    assert (transfer.effect, transfer.standing) == (Effect.HELPED, Standing.ABOVE)
    assert transfer.counts


def test_the_reverse_twin_shares_the_solos() -> None:
    twin = one((2.0, 1.0, 1.5, 1.0), BACK)
    assert twin.ratio == pytest.approx(0.5)
    assert (twin.effect, twin.standing) == (Effect.HARMED, Standing.BELOW)


def test_a_skip_is_resolved_and_neutral() -> None:
    transfer = one((2.0, 1.0, None, 1.0))
    assert transfer.is_skipped
    assert transfer.comparison is not None
    assert transfer.comparison.conditioned is None
    assert (transfer.ratio, transfer.effect, transfer.counts) == (1.0, Effect.NEUTRAL, True)


@pytest.mark.parametrize(
    "results",
    [(None, 1.0, None, 1.0), (2.0, None, 1.5, None), (None, None, None, None)],
)
def test_a_transfer_without_all_its_verdicts_says_nothing(results) -> None:
    transfer = one(results)
    assert (transfer.comparison, transfer.ratio, transfer.effect) == (None, None, None)
    assert transfer.standing is None
    assert not transfer.counts


def test_a_failed_baseline_leaves_the_transfer_unresolved() -> None:
    one((2.0, None, 1.5, None))
    Trial.objects.filter(arm=Arm.SOLO_TIRX).update(status="failed", reason="gave up")
    transfer = find_transfer("model-a", "02_problem", THERE, 1)
    assert transfer.comparison is None
    assert not transfer.counts


def test_failed_kernels_are_results() -> None:
    transfer = one((Outcome.CRASH, Outcome.WRONG_VALUES, 1.0, 1.0))
    # 1 / (1/8) = 8
    assert transfer.ratio == pytest.approx(8.0)
    assert transfer.standing == Standing.SAME


@pytest.mark.parametrize(
    ("entry", "problem", "replicate"),
    [("model-b", "02_problem", 1), ("model-a", "03_problem", 1), ("model-a", "02_problem", 2)],
)
def test_what_was_never_planned_does_not_exist(entry: str, problem: str, replicate: int) -> None:
    one()
    with pytest.raises(Trial.DoesNotExist, match=f"{entry}/{problem}/{THERE}/r{replicate}"):
        find_transfer(entry, problem, THERE, replicate)


def test_an_entrys_transfers_come_in_order_and_can_be_narrowed() -> None:
    entry = factories.make_entry()
    run, other = factories.make_run(entry), factories.make_run(entry, device="h200")
    for number in (25, 2):
        factories.make_replicate(run, factories.make_problem(number))
    factories.make_replicate(other, factories.make_problem(2), replicate=2)
    found = [
        (item.conditioned.problem_id, item.conditioned.replicate, item.direction)
        for item in transfers_of(entry)
    ]
    assert found == [
        (number, replicate, direction)
        for number, replicate in ((2, 1), (2, 2), (25, 1))
        for direction in (THERE, BACK)
    ]
    assert len(transfers_of(entry, direction=THERE)) == 3
    assert len(transfers_of(entry, device="h200")) == 2
    assert transfers_of(entry, workload="full") == []


def test_any_set_of_trials_can_be_read_as_transfers() -> None:
    for name in ("Model A", "Model B"):
        run = factories.make_run(factories.make_entry(name))
        factories.make_replicate(run, factories.make_problem(2))
        factories.make_replicate(run, factories.make_problem(25))
    found = transfers_among(Trial.objects.filter(problem=2))
    assert [str(item.conditioned.entry) for item in found] == ["Model A"] * 2 + ["Model B"] * 2


def test_reading_takes_two_queries_however_many_there_are(django_assert_num_queries) -> None:
    entry = factories.make_entry()
    run = factories.make_run(entry)
    for number in range(2, 8):
        factories.make_replicate(run, factories.make_problem(number))
    with django_assert_num_queries(2):
        found = transfers_of(entry)
        assert len([item.ratio for item in found if item.counts]) == 12
        assert {item.conditioned.run.device for item in found} == {"cpu"}
    with django_assert_num_queries(2):
        transfer = find_transfer("model-a", "02_problem", THERE, 1)
        assert transfer.source.skill is not None
        assert transfer.conditioned.received_skill == transfer.source.skill
        assert transfer.conditioned.kernel is not None


BAD_ROWS = [
    {"status": "graded"},
    {"status": "queued", "outcome": "crash"},
    {"status": "graded", "outcome": "passed", "verdict": {}},
    {"status": "graded", "outcome": "crash", "verdict": {}, "kernel_ms": 1.0},
    {"status": "running"},
    {"status": "graded", "outcome": "infrastructure", "verdict": {}},
]


@pytest.mark.parametrize("fields", BAD_ROWS)
def test_the_database_refuses_trials_that_contradict_themselves(fields) -> None:
    run, problem = factories.make_run(), factories.make_problem()
    with pytest.raises(IntegrityError), transaction.atomic():
        factories.make_trial(run, problem, Arm.SOLO_TIRX, **fields)
