"""Start a run: check what was asked for, and plan its trials."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from leaderboard.models import Entry, Problem, Run, Trial
from leaderboard.services import rankings
from leaderboard.services.dispatch import dispatch_ready
from leaderboard.services.refusals import Refusal
from runner import plan
from runner.protocol import BUDGET_SEC, SUBMISSION_LIMIT, Arm

__all__ = ["MAX_REPLICATES", "WORKLOADS", "dispatch_ready", "start"]

MAX_REPLICATES = 10
WORKLOADS = ("smoke", "full")


@dataclass(frozen=True)
class _Conditions:
    """All that is the same for every trial of a run."""

    device: str
    workload: str
    n_replicates: int
    budget_sec: int
    submission_limit: int


@transaction.atomic
def start(  # noqa: PLR0913 - what a run is asked for, each with its default
    entry: Entry,
    *,
    problems: Sequence[int],
    n_replicates: int = 1,
    device: str | None = None,
    workload: str | None = None,
    started_by: AbstractBaseUser | None = None,
    budget_sec: int = BUDGET_SEC,
    submission_limit: int = SUBMISSION_LIMIT,
) -> Run:
    """Plan a run's trials and, on commit, send the first orders.

    Replicates count on from the entry's earlier runs of the same problem.

    Args:
        entry: whose model is run.
        problems: catalogue numbers; said twice is meant once.
        n_replicates: of every arm.
        device: None is the site's own.
        workload: None is `smoke` on the CPU and `full` elsewhere.
        started_by: the account that asked, if any.
        budget_sec: of wall clock for one attempt.
        submission_limit: of one attempt.

    Raises:
        Refusal: something of it cannot be; the text says what and what to do.
    """
    device = device or settings.DEFAULT_DEVICE
    workload = workload or ("smoke" if device == "cpu" else "full")
    conditions = _Conditions(device, workload, n_replicates, budget_sec, submission_limit)
    _check_conditions(conditions)
    chosen = _chosen(problems)
    # The lock keeps two starts of one entry from planning the same replicates.
    locked = Entry.objects.select_for_update(no_key=True).get(pk=entry.pk)
    _check_entry(locked)
    run = Run.objects.create(
        entry=locked,
        started_by_id=started_by.pk if started_by else None,
        commit=settings.COMMIT,
        **vars(conditions),
    )
    Trial.objects.bulk_create(_trials(run, chosen))
    rankings.refresh(locked)
    transaction.on_commit(dispatch_ready)
    return run


def _check_conditions(asked: _Conditions) -> None:
    if asked.device not in settings.DEVICES:
        raise Refusal(
            f"No worker here runs on device {asked.device!r}; choose {_either(settings.DEVICES)}."
        )
    if asked.workload not in WORKLOADS:
        raise Refusal(f"Workload {asked.workload!r} is not for runs; choose {_either(WORKLOADS)}.")
    for name, value, limit in (
        ("replicates", asked.n_replicates, MAX_REPLICATES),
        ("seconds for an attempt", asked.budget_sec, BUDGET_SEC),
        ("submissions", asked.submission_limit, SUBMISSION_LIMIT),
    ):
        if not 1 <= value <= limit:
            raise Refusal(f"{value} {name} cannot be; give a number from 1 to {limit}.")


def _chosen(numbers: Sequence[int]) -> list[Problem]:
    if not numbers:
        raise Refusal("No problem is chosen; choose at least one.")
    found = Problem.objects.in_bulk(list(numbers))
    unknown = sorted(set(numbers) - set(found))
    if unknown:
        existing = Problem.objects.current().values_list("number", flat=True)
        raise Refusal(
            f"There is no problem {_listed(unknown)};"
            f" the catalogue has {_listed(list(existing)) or 'none yet (run sync_problems)'}."
        )
    retired = sorted(number for number, problem in found.items() if problem.is_retired)
    if retired:
        raise Refusal(f"Problem {_listed(retired)} has left the catalogue; choose others.")
    return [found[number] for number in sorted(found)]


def _check_entry(entry: Entry) -> None:
    if not entry.sealed_key and not entry.is_scripted:
        raise Refusal(
            f"{entry} has no key; enter one first (any word, if its endpoint asks for none)."
        )
    active = Trial.objects.filter(entry=entry).under_way().order_by("pk").first()
    if active is not None:
        raise Refusal(f"{entry} is still at run {active.run_id}; wait until that has ended.")


def _trials(run: Run, problems: Sequence[Problem]) -> list[Trial]:
    by_number = {problem.number: problem for problem in problems}
    newest = dict(
        Trial.objects.filter(entry=run.entry)
        .order_by()
        .values_list("problem")
        .annotate(newest=Max("replicate"))
    )
    now = timezone.now()
    return [
        Trial(
            run=run,
            entry=run.entry,
            problem=by_number[at.problem],
            replicate=newest.get(at.problem, 0) + at.replicate,
            arm=at.arm,
            status=_first_status(at.arm),
            queued_at=now if at.arm.source is None else None,
            problem_fingerprint=by_number[at.problem].fingerprint,
        )
        for at in plan.coordinates(by_number, run.n_replicates)
    ]


def _first_status(arm: Arm) -> Trial.Status:
    is_ready = plan.next_step(arm, {}) is plan.Step.RUN
    return Trial.Status.QUEUED if is_ready else Trial.Status.WAITING


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def _either(words: Sequence[str]) -> str:
    return " or ".join(words)
