"""A vendor's endpoint under a public name."""

from typing import Self

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import models
from django.db.models import Q


class EntryQuerySet(models.QuerySet["Entry"]):
    """The questions that pages and services ask of entries."""

    def owned_by(self, user: AbstractBaseUser | AnonymousUser) -> Self:
        """Entries that this account made."""
        return self.filter(owner_id=user.pk) if user.pk else self.none()


class Entry(models.Model):
    """One model behind one endpoint.

    `sealed_key` is written on the web side and opened on agent hosts alone; no page shows it.
    """

    class Provider(models.TextChoices):
        """Which wire protocol the endpoint speaks."""

        OPENAI = "openai", "OpenAI-compatible"
        ANTHROPIC = "anthropic", "Anthropic"

    class Preflight(models.TextChoices):
        """What is known of the endpoint."""

        UNCHECKED = "unchecked", "not checked"
        CHECKING = "checking", "being checked"
        PASSED = "passed", "answers"
        FAILED = "failed", "does not answer"

    slug = models.SlugField(max_length=60, unique=True)
    name = models.CharField(max_length=80, unique=True)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="entries"
    )
    provider = models.CharField(max_length=12, choices=Provider)
    base_url = models.URLField(max_length=300)
    model_id = models.CharField(max_length=120)
    sealed_key = models.TextField(blank=True)
    is_scripted = models.BooleanField(
        default=False, help_text="Plays a fixed policy; shown apart and never ranked among models."
    )
    preflight = models.CharField(max_length=9, choices=Preflight, default=Preflight.UNCHECKED)
    preflight_token = models.CharField(max_length=32, blank=True)
    preflight_summary = models.TextField(blank=True)
    preflight_steps = models.JSONField(default=list, blank=True)
    preflight_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = EntryQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                name="entry_preflight_has_answer",
                condition=~Q(preflight__in=["passed", "failed"]) | Q(preflight_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return self.name
