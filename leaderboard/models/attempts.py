"""What an attempt sends on the way: kernels for feedback, turns and notes."""

from django.db import models

from leaderboard.models.artefacts import Artefact
from leaderboard.models.trials import Trial
from runner.protocol import Outcome


class Submission(models.Model):
    """A kernel that an attempt sent for feedback, with the verdict it got."""

    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="submissions")
    lease_token = models.CharField(max_length=32)
    number = models.PositiveSmallIntegerField()
    kernel = models.ForeignKey(Artefact, on_delete=models.PROTECT, related_name="+")
    outcome = models.CharField(max_length=20, choices=[(item.value, item.name) for item in Outcome])
    kernel_ms = models.FloatField(null=True)
    eager_ms = models.FloatField(null=True)
    verdict = models.JSONField()
    counted = models.BooleanField()
    elapsed_sec = models.FloatField(help_text="Since the attempt began.")

    class Meta:
        ordering = ["trial", "number"]
        constraints = [
            models.UniqueConstraint(
                fields=["trial", "lease_token", "number"], name="submission_one_per_number"
            ),
        ]

    def __str__(self) -> str:
        return f"submission {self.number} of {self.trial}"

    @property
    def speedup(self) -> float | None:
        """Eager time over kernel time; None unless it passed."""
        if self.kernel_ms is None or self.eager_ms is None:
            return None
        return self.eager_ms / self.kernel_ms


class Event(models.Model):
    """A turn or a note of an attempt, in the order it happened."""

    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="events")
    lease_token = models.CharField(max_length=32)
    sequence = models.PositiveIntegerField()
    kind = models.CharField(max_length=12)
    elapsed_sec = models.FloatField()
    body = models.JSONField(default=dict)

    class Meta:
        ordering = ["trial", "sequence"]
        constraints = [
            models.UniqueConstraint(
                fields=["trial", "lease_token", "sequence"], name="event_one_per_sequence"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.sequence} of {self.trial}"
