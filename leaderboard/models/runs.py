"""One execution of the plan for an entry."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from leaderboard.models.entries import Entry


class Run(models.Model):
    """What was asked for: problems, replicates, device, budgets; its trials hold what came."""

    class Origin(models.TextChoices):
        """Where the numbers come from."""

        MEASURED = "measured"
        IMPORTED = "imported"

    entry = models.ForeignKey(Entry, on_delete=models.CASCADE, related_name="runs")
    started_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    origin = models.CharField(max_length=8, choices=Origin, default=Origin.MEASURED)
    device = models.CharField(max_length=20)
    workload = models.CharField(max_length=20)
    n_replicates = models.PositiveSmallIntegerField(default=1)
    budget_sec = models.PositiveIntegerField()
    submission_limit = models.PositiveSmallIntegerField()
    commit = models.CharField(max_length=64, blank=True)
    started_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-started_at"]
        constraints = [
            models.CheckConstraint(
                name="run_has_room_to_work",
                condition=Q(n_replicates__gte=1, budget_sec__gte=1, submission_limit__gte=1),
            ),
        ]

    def __str__(self) -> str:
        return f"run {self.pk} of {self.entry}"
