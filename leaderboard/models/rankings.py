"""Published numbers per entry, direction, device and workload, with a version."""

from django.db import models
from django.db.models import Max, Q
from django.utils import timezone

from leaderboard.models.entries import Entry
from runner.protocol import Direction


class RankingQuerySet(models.QuerySet["Ranking"]):
    """The questions that pages ask of rankings."""

    def version(self) -> int:
        """A number that moves whenever any ranking does; 0 while there is none."""
        return self.aggregate(newest=Max("version"))["newest"] or 0


class Ranking(models.Model):
    """One row of the board: what an entry's counting comparisons say in one direction.

    Rates and lift are fractions of 1, None where they are unknown; `scoring` names their
    definition. Results of two devices or workloads never share a row.
    """

    entry = models.ForeignKey(Entry, on_delete=models.CASCADE, related_name="rankings")
    direction = models.CharField(
        max_length=16, choices=[(item.value, item.label) for item in Direction]
    )
    device = models.CharField(max_length=20)
    workload = models.CharField(max_length=20)
    scoring = models.CharField(max_length=20)
    n_planned = models.PositiveIntegerField()
    n = models.PositiveIntegerField(help_text="Problems with a counting comparison.")
    n_skipped = models.PositiveIntegerField()
    lift = models.FloatField(null=True)
    lift_low = models.FloatField(null=True)
    lift_high = models.FloatField(null=True)
    help_rate = models.FloatField(null=True)
    help_low = models.FloatField(null=True)
    help_high = models.FloatField(null=True)
    harm_rate = models.FloatField(null=True)
    harm_low = models.FloatField(null=True)
    harm_high = models.FloatField(null=True)
    neutral_rate = models.FloatField(null=True)
    solo_pass_rate = models.FloatField(null=True)
    conditioned_pass_rate = models.FloatField(null=True)
    solo_s = models.FloatField(null=True, help_text="100 × the mean of R@t, solo.")
    conditioned_s = models.FloatField(null=True)
    version = models.PositiveBigIntegerField()
    refreshed_at = models.DateTimeField(
        default=timezone.now, help_text="Trials that ended later are not in it."
    )

    objects = RankingQuerySet.as_manager()

    class Meta:
        ordering = ["entry", "direction", "device", "workload"]
        constraints = [
            models.UniqueConstraint(
                fields=["entry", "direction", "device", "workload"], name="ranking_one_per_cell"
            ),
            models.CheckConstraint(
                name="ranking_unknown_without_comparisons",
                condition=Q(n__gt=0, lift__isnull=False)
                | Q(n=0, lift__isnull=True, help_rate__isnull=True, harm_rate__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.entry} {self.direction} on {self.device}"
