"""The slots of a run's plan, and the verdict that came home for each."""

from typing import TYPE_CHECKING, Self

from django.db import models
from django.db.models import Exists, OuterRef, Q

from leaderboard.models.artefacts import Artefact
from leaderboard.models.entries import Entry
from leaderboard.models.problems import Problem
from leaderboard.models.reviews import Review
from leaderboard.models.runs import Run
from runner import messages
from runner.protocol import Arm, Coordinate, Direction, EndReason, Outcome

if TYPE_CHECKING:
    from leaderboard.models.attempts import Event, Submission


class TrialQuerySet(models.QuerySet["Trial"]):
    """The questions that pages and services ask of trials."""

    def conditioned(self, direction: Direction | None = None) -> Self:
        """Trials that received a skill, in one direction or both."""
        directions = [direction] if direction else list(Direction)
        return self.filter(arm__in=[Arm.conditioned(item) for item in directions])

    def resolved(self) -> Self:
        """Conditioned trials whose source, baseline and own verdict all stand."""
        graded = Trial.objects.filter(
            entry=OuterRef("entry"),
            problem=OuterRef("problem"),
            replicate=OuterRef("replicate"),
            status=Trial.Status.GRADED,
        )
        return self.conditioned().filter(
            Exists(graded.filter(arm=Arm.SOLO_CUTEDSL)),
            Exists(graded.filter(arm=Arm.SOLO_TIRX)),
            status__in=[Trial.Status.GRADED, Trial.Status.SKIPPED],
        )

    def rankable(self) -> Self:
        """Conditioned trials whose comparison counts: resolved, and not rejected by a reviewer.

        The only place that decides what counts.
        """
        rejected = Review.objects.standing().rejecting().filter(trial=OuterRef("pk"))
        return self.resolved().exclude(Exists(rejected))

    def under_way(self) -> Self:
        """Trials that have not come to an end."""
        return self.filter(
            status__in=[Trial.Status.WAITING, Trial.Status.QUEUED, Trial.Status.RUNNING]
        )

    def siblings_of(self, trial: "Trial") -> Self:
        """The trials of the same entry, problem and replicate, itself included."""
        return self.filter(
            entry=trial.entry_id, problem=trial.problem_id, replicate=trial.replicate
        )


class Trial(models.Model):
    """One slot of a run's plan: a variant, a replicate and an arm.

    Replicates count on from run to run, so that a coordinate names one trial of its entry and
    every run counts. `entry` repeats `run.entry` to let the database hold that.
    One attempt fills it. A host failure sends it back to QUEUED, at most MAX_TRIES times; a
    failed kernel does not, for that is a result. `lease_token` stays when the attempt ends: what
    carries another token came from a try that was lost.
    """

    class Status(models.TextChoices):
        """Where the trial is; only leaderboard.services moves it."""

        WAITING = "waiting", "waits for its source"
        QUEUED = "queued", "queued"
        RUNNING = "running", "running"
        GRADED = "graded", "graded"
        SKIPPED = "skipped", "skipped"
        FAILED = "failed", "failed for an infrastructure reason"

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="trials")
    entry = models.ForeignKey(Entry, on_delete=models.CASCADE, related_name="trials")
    problem = models.ForeignKey(Problem, on_delete=models.PROTECT, related_name="trials")
    replicate = models.PositiveSmallIntegerField(default=1)
    arm = models.CharField(max_length=40, choices=[(arm.value, arm.label) for arm in Arm])
    status = models.CharField(max_length=8, choices=Status)
    reason = models.CharField(
        max_length=500, blank=True, help_text="Why it is skipped or failed, in words."
    )

    lease_token = models.CharField(max_length=32, blank=True)
    lease_until = models.DateTimeField(null=True)
    n_tries = models.PositiveSmallIntegerField(default=0)
    queued_at = models.DateTimeField(null=True)
    started_at = models.DateTimeField(
        null=True, help_text="First sign of life of the attempt; unset while its order travels."
    )
    ended_at = models.DateTimeField(null=True)

    problem_fingerprint = models.CharField(max_length=64)
    received_skill = models.ForeignKey(
        Artefact, on_delete=models.PROTECT, null=True, related_name="+"
    )

    end_reason = models.CharField(
        max_length=24, blank=True, choices=[(item.value, item.name) for item in EndReason]
    )
    end_detail = models.TextField(blank=True)
    kernel = models.ForeignKey(Artefact, on_delete=models.PROTECT, null=True, related_name="+")
    skill = models.ForeignKey(Artefact, on_delete=models.PROTECT, null=True, related_name="+")
    outcome = models.CharField(
        max_length=20, blank=True, choices=[(item.value, item.name) for item in Outcome]
    )
    kernel_ms = models.FloatField(null=True, help_text="Median over the timing draws, in ms.")
    eager_ms = models.FloatField(null=True, help_text="The eager baseline, likewise, in ms.")
    verdict = models.JSONField(null=True)
    n_turns = models.PositiveIntegerField(null=True)
    n_input_tokens = models.PositiveIntegerField(null=True)
    n_cached_tokens = models.PositiveIntegerField(null=True)
    n_output_tokens = models.PositiveIntegerField(null=True)
    wall_sec = models.FloatField(null=True)
    environment = models.JSONField(
        default=dict, blank=True, help_text="Software and hardware of the attempt's host."
    )

    objects = TrialQuerySet.as_manager()

    class Meta:
        ordering = ["entry", "problem", "replicate", "pk"]
        indexes = [
            models.Index(
                fields=["status"],
                name="trial_under_way",
                condition=Q(status__in=["waiting", "queued", "running"]),
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["entry", "problem", "replicate", "arm"], name="trial_one_per_coordinate"
            ),
            models.CheckConstraint(
                name="trial_graded_has_outcome",
                condition=Q(status="graded", verdict__isnull=False) & ~Q(outcome="")
                | ~Q(status="graded") & Q(outcome="", verdict__isnull=True),
            ),
            models.CheckConstraint(
                name="trial_timed_only_if_passed",
                # A check that comes to NULL holds, so NULL times must be ruled out by name.
                condition=Q(
                    outcome="passed",
                    kernel_ms__isnull=False,
                    kernel_ms__gt=0,
                    eager_ms__isnull=False,
                    eager_ms__gt=0,
                )
                | ~Q(outcome="passed") & Q(kernel_ms__isnull=True),
            ),
            models.CheckConstraint(
                name="trial_running_has_lease",
                condition=~Q(status="running") | ~Q(lease_token="") & Q(lease_until__isnull=False),
            ),
            models.CheckConstraint(
                name="trial_infrastructure_is_no_result",
                condition=~Q(outcome="infrastructure"),
            ),
        ]

    def __str__(self) -> str:
        return str(self.coordinate)

    @property
    def coordinate(self) -> Coordinate:
        """The trial's address within its entry."""
        return Coordinate(self.problem_id, self.replicate, Arm(self.arm))

    @property
    def passed(self) -> bool | None:
        """Whether its final kernel passed; None while there is no verdict."""
        return self.outcome == Outcome.PASSED if self.outcome else None

    @property
    def speedup(self) -> float | None:
        """Eager time over kernel time; None unless it passed."""
        if self.kernel_ms is None or self.eager_ms is None:
            return None
        return self.eager_ms / self.kernel_ms

    @property
    def own_submissions(self) -> "models.QuerySet[Submission]":
        """The submissions of the try that fills the trial; those of lost tries stay out."""
        return self.submissions.filter(lease_token=self.lease_token)

    @property
    def own_events(self) -> "models.QuerySet[Event]":
        """Likewise its turns and notes."""
        return self.events.filter(lease_token=self.lease_token)

    def read_verdict(self) -> messages.Verdict | None:
        """Return the stored verdict as the message it came in."""
        return messages.Verdict.from_json(self.verdict) if self.verdict else None
