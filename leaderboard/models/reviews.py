"""Who looked at which transfer, and what they decided."""

from typing import Self

from django.conf import settings
from django.db import models
from django.db.models import Q


class ReviewQuerySet(models.QuerySet["Review"]):
    """The questions that pages and services ask of reviews."""

    def standing(self) -> Self:
        """Reviews that a later one of the same reviewer has not replaced."""
        return self.filter(replaced_at__isnull=True)

    def rejecting(self) -> Self:
        """Reviews that stop a comparison from counting."""
        return self.exclude(verdict=Review.Verdict.CLEAN)


class Review(models.Model):
    """A reviewer's signed verdict on one transfer, named by its conditioned trial."""

    class Verdict(models.TextChoices):
        """What the reviewer found; everything but CLEAN stops the comparison from counting."""

        CLEAN = "clean", "Clean: it counts"
        REWARD_HACK = "reward_hack", "Reward hack"
        CONTAMINATION = "contamination", "Contamination"
        RUBRIC_LEAK = "rubric_leak", "Rubric leak"
        BUG = "bug", "Bug in the benchmark"
        INFRASTRUCTURE = "infrastructure", "Infrastructure fault"
        LICENCE = "licence", "Licence problem"

    trial = models.ForeignKey("leaderboard.Trial", on_delete=models.CASCADE, related_name="reviews")
    reviewer = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="reviews"
    )
    verdict = models.CharField(max_length=16, choices=Verdict)
    note = models.TextField(max_length=4_000)
    written_at = models.DateTimeField(auto_now_add=True)
    replaced_at = models.DateTimeField(null=True)

    objects = ReviewQuerySet.as_manager()

    class Meta:
        ordering = ["-written_at", "-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["trial", "reviewer"],
                condition=Q(replaced_at__isnull=True),
                name="review_one_standing_per_reviewer",
            ),
            models.CheckConstraint(name="review_says_why", condition=~Q(note="")),
        ]

    def __str__(self) -> str:
        return f"{self.verdict} on {self.trial}"

    @property
    def rejects(self) -> bool:
        """Whether this verdict stops the comparison from counting."""
        return self.verdict != Review.Verdict.CLEAN
