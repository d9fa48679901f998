"""Published numbers: which rows feed them, when their version moves, and reviews' say in it."""

import pytest

from leaderboard.models import Entry, Ranking, Review, Trial
from leaderboard.services import rankings, reviews
from leaderboard.services.refusals import Refusal
from leaderboard.stats.outcomes import Comparison, Graded
from leaderboard.stats.summary import seed_of, summarise
from runner.protocol import Arm, Direction, Outcome
from tests.leaderboard import factories

pytestmark = pytest.mark.django_db
THERE, BACK = Direction.CUTEDSL_TO_TIRX, Direction.TIRX_TO_CUTEDSL


@pytest.fixture
def entry() -> Entry:
    """Three problems: helped / harmed there; the third still under way."""
    entry = factories.make_entry(owner=factories.make_user("otto"))
    run = factories.make_run(entry)
    # solo CuTe DSL, solo TIRx, there (TIRx with the skill), back
    factories.make_replicate(run, factories.make_problem(2), (2.0, 1.0, 2.0, 2.0))
    factories.make_replicate(run, factories.make_problem(25), (1.0, 4.0, Outcome.CRASH, 2.0))
    factories.make_replicate(run, factories.make_problem(36), (1.0, None, None, None))
    return entry


def row(entry: Entry, direction: Direction = THERE) -> Ranking:
    return Ranking.objects.get(entry=entry, direction=direction)


def conditioned(entry: Entry, problem: int, direction: Direction = THERE) -> Trial:
    return Trial.objects.get(entry=entry, problem=problem, arm=Arm.conditioned(direction))


def test_a_ranking_says_what_the_statistics_say(entry: Entry) -> None:
    rankings.refresh(entry)
    good = [Graded(passed=True, speedup=x) for x in (1.0, 2.0, 4.0)]
    comparisons = [
        Comparison(2, "linear_attention", 1, good[1], good[0], good[1], THERE),
        Comparison(25, "kv_cache", 1, good[0], good[2], Graded(passed=False), THERE),
    ]
    expected = summarise(comparisons, n_planned=3, seed=seed_of(comparisons))
    found = row(entry)
    assert {name: getattr(found, name) for name in vars(expected)} == vars(expected)
    # ρ = 2 and (1/8) / 4 = 1/32: (2 / 32)^(1/2) - 1 = -3/4
    assert found.lift == pytest.approx(-0.75)
    assert (found.n, found.n_planned, found.help_rate, found.harm_rate) == (2, 3, 0.5, 0.5)


def test_the_other_direction_has_its_own_row(entry: Entry) -> None:
    rankings.refresh(entry)
    found = row(entry, BACK)
    # ρ = 2/2 and 2/1: 2^(1/2) - 1
    assert found.lift == pytest.approx(2**0.5 - 1)
    assert found.help_rate == 0.5


def test_devices_and_workloads_never_share_a_row(entry: Entry) -> None:
    other = factories.make_run(entry, device="h200", workload="full")
    factories.make_replicate(other, factories.make_problem(2), (1.0, 1.0, 4.0, 1.0), replicate=2)
    rankings.refresh(entry)
    cells = Ranking.objects.filter(entry=entry, direction=THERE).values_list(
        "device", "workload", "n_planned", "n"
    )
    assert set(cells) == {("cpu", "smoke", 3, 2), ("h200", "full", 1, 1)}
    h200 = Ranking.objects.get(entry=entry, direction=THERE, device="h200")
    assert h200.lift == pytest.approx(3.0)


def test_a_skip_counts_as_neutral(entry: Entry) -> None:
    factories.make_replicate(
        factories.make_run(entry), factories.make_problem(49), (1.0, 2.0, None, 1.0)
    )
    rankings.refresh(entry)
    found = row(entry)
    assert (found.n, found.n_skipped, found.neutral_rate) == (3, 1, pytest.approx(1 / 3))


def test_the_version_moves_only_when_a_number_does(entry: Entry) -> None:
    assert Ranking.objects.version() == 0
    assert rankings.refresh(entry)
    assert Ranking.objects.version() == 1
    assert not rankings.refresh(entry)
    assert Ranking.objects.version() == 1
    factories.make_replicate(factories.make_run(entry), factories.make_problem(49))
    assert rankings.refresh(entry)
    assert {row(entry).version, row(entry, BACK).version} == {2}


def test_only_the_rows_that_changed_get_the_new_version(entry: Entry) -> None:
    rankings.refresh(entry)
    Trial.objects.filter(pk=conditioned(entry, 2).pk).update(kernel_ms=0.25)
    rankings.refresh(entry)
    assert (row(entry).version, row(entry, BACK).version) == (2, 1)


def test_the_version_is_one_for_all_entries(entry: Entry) -> None:
    rankings.refresh(entry)
    other = factories.make_entry("Model B")
    factories.make_replicate(factories.make_run(other), factories.make_problem(2))
    rankings.refresh(other)
    assert row(other).version == 2
    assert row(entry).version == 1


def test_a_cell_whose_trials_are_gone_says_nothing_any_more(entry: Entry) -> None:
    rankings.refresh(entry)
    entry.runs.all().delete()
    assert rankings.refresh(entry)
    found = row(entry)
    assert (found.n, found.n_planned, found.lift, found.version) == (0, 0, None, 2)


def test_refreshing_takes_the_same_number_of_queries_however_many_trials(
    entry: Entry, django_assert_num_queries
) -> None:
    rankings.refresh(entry)
    with django_assert_num_queries(8):
        rankings.refresh(entry)
    for number in range(50, 60):
        factories.make_replicate(factories.make_run(entry), factories.make_problem(number))
    rankings.refresh(entry)
    with django_assert_num_queries(8):
        rankings.refresh(entry)


def test_an_entry_is_behind_from_a_trials_end_to_its_refresh(entry: Entry) -> None:
    assert rankings.behind() == [entry]
    rankings.refresh(entry)
    assert rankings.behind() == []
    factories.make_replicate(factories.make_run(entry), factories.make_problem(49))
    assert rankings.behind() == [entry]


def test_a_rejected_transfer_stops_counting_at_once(entry: Entry) -> None:
    rankings.refresh(entry)
    vera = factories.make_user("vera", reviewer=True)
    reviews.review(conditioned(entry, 25), reviewer=vera, verdict="reward_hack", note="cached")
    found = row(entry)
    assert (found.n, found.n_planned, found.version) == (1, 3, 2)
    assert found.lift == pytest.approx(1.0)
    assert row(entry, BACK).n == 2


def test_a_reviewers_later_verdict_replaces_the_earlier(entry: Entry) -> None:
    vera = factories.make_user("vera", reviewer=True)
    trial = conditioned(entry, 25)
    first = reviews.review(trial, reviewer=vera, verdict="bug", note="odd clock")
    second = reviews.review(trial, reviewer=vera, verdict="clean", note="clock was right")
    first.refresh_from_db()
    assert first.replaced_at is not None
    assert list(Review.objects.standing()) == [second]
    assert row(entry).n == 2


def test_one_reviewers_rejection_stands_against_anothers_approval(entry: Entry) -> None:
    trial = conditioned(entry, 25)
    for name, verdict in (("vera", "contamination"), ("rita", "clean")):
        reviewer = factories.make_user(name, reviewer=True)
        reviews.review(trial, reviewer=reviewer, verdict=verdict, note="looked")
    assert row(entry).n == 1


def test_the_owner_cannot_review(entry: Entry) -> None:
    with pytest.raises(Refusal, match="Model A is your own entry"):
        reviews.review(
            conditioned(entry, 2), reviewer=entry.owner, verdict="clean", note="very good"
        )


@pytest.mark.parametrize(
    ("verdict", "note", "sentence"),
    [
        ("clean", "  \n", "says why"),
        ("clean", "n" * 4_001, "1 to 4,000 characters"),
        ("dubious", "hm", "'dubious' is no verdict"),
    ],
)
def test_a_review_needs_a_verdict_and_a_note(
    entry: Entry, verdict: str, note: str, sentence: str
) -> None:
    vera = factories.make_user("vera", reviewer=True)
    with pytest.raises(Refusal, match=sentence):
        reviews.review(conditioned(entry, 2), reviewer=vera, verdict=verdict, note=note)
    assert not Review.objects.exists()


def test_only_transfers_that_ended_are_reviewed(entry: Entry) -> None:
    vera = factories.make_user("vera", reviewer=True)
    solo = Trial.objects.get(entry=entry, problem=2, arm=Arm.SOLO_TIRX)
    with pytest.raises(Refusal, match="is a solo attempt"):
        reviews.review(solo, reviewer=vera, verdict="clean", note="fine")
    with pytest.raises(Refusal, match="waits for its source"):
        reviews.review(conditioned(entry, 36, BACK), reviewer=vera, verdict="clean", note="fine")
