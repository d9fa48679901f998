"""The catalogue's rows, so that trials have something to point at."""

from django.db import models


class ProblemQuerySet(models.QuerySet["Problem"]):
    """The questions that pages and services ask of problems."""

    def current(self) -> "ProblemQuerySet":
        """Problems that runs may choose."""
        return self.filter(is_retired=False)


class Problem(models.Model):
    """One fused computation. A problem that left the catalogue is retired, never deleted."""

    number = models.PositiveSmallIntegerField(primary_key=True)
    slug = models.SlugField(max_length=120, unique=True)
    family = models.CharField(max_length=40)
    title = models.CharField(max_length=300)
    source = models.TextField(help_text="Provenance and licence, in one line.")
    fingerprint = models.CharField(max_length=64, help_text="Changes when the semantics do.")
    is_retired = models.BooleanField(default=False)

    objects = ProblemQuerySet.as_manager()

    class Meta:
        ordering = ["number"]

    def __str__(self) -> str:
        return self.slug
