"""Plain functions that make rows for tests, one a noun; what is not said gets a sensible value."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import Permission, User
from django.utils import timezone

from leaderboard.models import Artefact, Entry, Problem, Review, Run, Submission, Trial
from runner.messages import Verdict
from runner.protocol import Arm, Direction, Dsl, EndReason, Outcome

EAGER_MS = 1.0
FAMILIES = ("attention", "kv_cache", "linear_attention", "mlp_norm", "moe", "quantization")

# What an attempt came to: its speed-up, the outcome it failed with, or None for "still queued".
Result = float | Outcome | None


def make_user(name: str = "vera", *, reviewer: bool = False) -> User:
    """An account; the password is the name."""
    user = User.objects.create_user(name, password=name)
    if reviewer:
        user.user_permissions.add(
            Permission.objects.get(codename="add_review", content_type__app_label="leaderboard")
        )
    return user


def make_problem(number: int = 2, *, family: str | None = None, **fields: Any) -> Problem:
    """A catalogue row; families take turns by number."""
    values: dict[str, Any] = {
        "slug": f"{number:02d}_problem",
        "family": family or FAMILIES[number % len(FAMILIES)],
        "title": f"Problem {number}",
        "source": "made for tests",
        "fingerprint": f"{number:064x}",
    }
    return Problem.objects.get_or_create(number=number, defaults=values | fields)[0]


def make_entry(name: str = "Model A", *, owner: User | None = None, **fields: Any) -> Entry:
    """An entry with a (meaningless) sealed key, as if it had been entered by its owner."""
    values: dict[str, Any] = {
        "slug": name.lower().replace(" ", "-"),
        "provider": Entry.Provider.OPENAI,
        "base_url": "http://127.0.0.1:9/v1",
        "model_id": "model-a",
        "sealed_key": "sealed",
    }
    return Entry.objects.create(name=name, owner=owner, **(values | fields))


def make_run(entry: Entry | None = None, **fields: Any) -> Run:
    """A run without trials; add them with make_trial or make_replicate."""
    values: dict[str, Any] = {
        "device": "cpu",
        "workload": "smoke",
        "budget_sec": 2_400,
        "submission_limit": 10,
    }
    return Run.objects.create(entry=entry or make_entry(), **(values | fields))


def make_verdict(result: float | Outcome = 2.0, **fields: Any) -> Verdict:
    """A verdict: passed at this speed-up (eager takes EAGER_MS), or failed with this outcome."""
    values: dict[str, Any] = {
        "outcome": Outcome.PASSED,
        "stage": "timing",
        "message": "every draw was correct",
        "problem": "02_problem",
        "dsl": "tirx",
        "device": "cpu",
        "workload": "smoke",
    }
    if isinstance(result, Outcome):
        values |= {"outcome": result, "stage": "correctness", "message": "output 0 is wrong"}
    else:
        kernel_ms = EAGER_MS / result
        values |= {
            "n_correct_draws": 5,
            "kernel_ms": kernel_ms,
            "eager_ms": EAGER_MS,
            "kernel_draws_ms": tuple(kernel_ms * (1 + k / 1_000) for k in range(-25, 25)),
            "eager_draws_ms": tuple(EAGER_MS * (1 + k / 1_000) for k in range(-25, 25)),
        }
    return Verdict(**(values | fields))


def make_trial(run: Run, problem: Problem, arm: Arm, result: Result = None, **fields: Any) -> Trial:
    """A trial: graded with this result, or QUEUED without one.

    `kernel` and `skill` may be given as text. A graded one has a kernel, and a solo a skill too.
    """
    values: dict[str, Any] = {
        "entry": run.entry,
        "status": Trial.Status.QUEUED,
        "problem_fingerprint": problem.fingerprint,
        "queued_at": timezone.now(),
    }
    if result is not None:
        values |= _graded(result, arm, problem)
    for name in ("kernel", "skill", "received_skill"):
        if isinstance(fields.get(name), str):
            fields[name] = Artefact.objects.keep(fields[name])
    return Trial.objects.create(run=run, problem=problem, arm=arm, **(values | fields))


def _graded(result: float | Outcome, arm: Arm, problem: Problem) -> dict[str, Any]:
    verdict = make_verdict(result, problem=problem.slug, dsl=arm.dsl.value)
    text = f"# {problem.slug} {arm} {result}\ndef solve(x):\n    return x\n"
    skill = f"# What {arm} showed\nMeasured {result}.\n"
    now = timezone.now()
    return {
        "status": Trial.Status.GRADED,
        "lease_token": "f" * 32,
        "n_tries": 1,
        "started_at": now - timedelta(minutes=5),
        "ended_at": now,
        "end_reason": EndReason.FINISHED,
        "outcome": verdict.outcome,
        "kernel_ms": verdict.kernel_ms,
        "eager_ms": verdict.eager_ms,
        "verdict": verdict.to_json(),
        "kernel": Artefact.objects.keep(text),
        "skill": None if arm.direction else Artefact.objects.keep(skill),
        "n_turns": 4,
        "n_input_tokens": 1_000,
        "n_cached_tokens": None,
        "n_output_tokens": 200,
        "wall_sec": 300.0,
    }


def make_replicate(
    run: Run,
    problem: Problem,
    results: Sequence[Result] = (2.0, 1.0, 1.5, 1.0),
    *,
    replicate: int = 1,
) -> dict[Arm, Trial]:
    """All four trials of one replicate, in the plan's order.

    `results` are solo CuTe DSL, solo TIRx, CuTe DSL → TIRx, TIRx → CuTe DSL. A conditioned None is
    SKIPPED when its source is graded (the source then has no skill), else WAITING.
    """
    arms = [*(Arm.solo(dsl) for dsl in Dsl), *(Arm.conditioned(item) for item in Direction)]
    by_arm = dict(zip(arms, results, strict=True))
    trials: dict[Arm, Trial] = {}
    for arm, result in by_arm.items():
        fields: dict[str, Any] = {"replicate": replicate}
        if arm.source is None and by_arm[_fed_by(arm)] is None:
            fields["skill"] = None
        elif arm.source is not None and result is None:
            is_skipped = by_arm[arm.source] is not None
            fields["status"] = Trial.Status.SKIPPED if is_skipped else Trial.Status.WAITING
            fields["reason"] = "the source wrote no skill" if is_skipped else ""
        elif arm.source is not None:
            fields["received_skill"] = trials[arm.source].skill
        trials[arm] = make_trial(run, problem, arm, result, **fields)
    return trials


def _fed_by(solo: Arm) -> Arm:
    return next(Arm.conditioned(item) for item in Direction if item.source == solo.dsl)


def make_submission(trial: Trial, number: int = 1, result: float | Outcome = 2.0) -> Submission:
    """A kernel that the trial's present try sent for feedback."""
    verdict = make_verdict(result, problem=trial.problem.slug, dsl=Arm(trial.arm).dsl.value)
    return Submission.objects.create(
        trial=trial,
        lease_token=trial.lease_token,
        number=number,
        kernel=Artefact.objects.keep(f"# submission {number} of {trial}\n"),
        outcome=verdict.outcome,
        kernel_ms=verdict.kernel_ms,
        eager_ms=verdict.eager_ms,
        verdict=verdict.to_json(),
        counted=verdict.outcome.counts_as_submission,
        elapsed_sec=60.0 * number,
    )


def make_review(trial: Trial, reviewer: User, verdict: str = Review.Verdict.CLEAN) -> Review:
    """A standing review of the transfer that ends in this conditioned trial."""
    return Review.objects.create(trial=trial, reviewer=reviewer, verdict=verdict, note="Looked.")
