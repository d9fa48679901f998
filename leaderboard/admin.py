"""The back office: accounts and names may be changed; results may only be read."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from leaderboard.models import (
    Artefact,
    Entry,
    Event,
    Problem,
    Ranking,
    Review,
    Run,
    Submission,
    Trial,
)


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Rows that only services write."""

    def has_add_permission(self, _request: HttpRequest, _obj: Any = None) -> bool:
        """Nobody adds a result by hand."""
        return False

    def has_change_permission(self, _request: HttpRequest, _obj: Any = None) -> bool:
        """Nobody changes one."""
        return False

    def has_delete_permission(self, _request: HttpRequest, _obj: Any = None) -> bool:
        """Nobody deletes one."""
        return False


@admin.register(Entry)
class EntryAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Who owns an entry and whether it is scripted; its endpoint is the vendor's own business.

    The address is read-only too: the key is bound to it.
    """

    fields = (
        "name",
        "slug",
        "owner",
        "is_scripted",
        "provider",
        "base_url",
        "model_id",
        "has_key",
        "preflight",
        "preflight_summary",
        "preflight_at",
        "created_at",
    )
    readonly_fields = tuple(item for item in fields if item not in ("owner", "is_scripted"))
    list_display = ("name", "owner", "provider", "model_id", "is_scripted", "has_key", "preflight")
    list_filter = ("provider", "is_scripted", "preflight")
    search_fields = ("name", "slug", "model_id")

    @admin.display(boolean=True, description="has a key")
    def has_key(self, entry: Entry) -> bool:
        """Whether a key is stored; the key itself, sealed or not, is never shown."""
        return bool(entry.sealed_key)

    def has_add_permission(self, _request: HttpRequest) -> bool:
        """Entries are made where their key is sealed."""
        return False

    def has_delete_permission(self, _request: HttpRequest, _obj: Entry | None = None) -> bool:
        """Deleting one would take its results along."""
        return False


@admin.register(Problem)
class ProblemAdmin(ReadOnlyAdmin):
    """The catalogue, as sync_problems left it."""

    list_display = ("number", "slug", "family", "title", "is_retired")
    list_filter = ("family", "is_retired")


@admin.register(Run)
class RunAdmin(ReadOnlyAdmin):
    """What was asked for."""

    list_display = ("id", "entry", "device", "workload", "origin", "n_replicates", "started_at")
    list_filter = ("device", "workload", "origin")


@admin.register(Trial)
class TrialAdmin(ReadOnlyAdmin):
    """What came of it; a lease token would let its reader forge a report, so it stays hidden."""

    exclude = ("lease_token",)
    list_display = ("__str__", "entry", "status", "outcome", "n_tries", "ended_at")
    list_filter = ("status", "outcome", "arm")
    list_select_related = ("entry",)


@admin.register(Submission, Event)
class AttemptPartAdmin(ReadOnlyAdmin):
    """What an attempt sent on the way."""

    exclude = ("lease_token",)
    list_display = ("__str__", "elapsed_sec")
    list_select_related = ("trial",)


@admin.register(Ranking)
class RankingAdmin(ReadOnlyAdmin):
    """Published numbers."""

    list_display = ("entry", "direction", "device", "workload", "n", "n_planned", "version")


@admin.register(Review)
class ReviewAdmin(ReadOnlyAdmin):
    """Signed verdicts; a new one is written on its transfer's page."""

    list_display = ("trial", "reviewer", "verdict", "written_at", "replaced_at")
    list_filter = ("verdict",)


@admin.register(Artefact)
class ArtefactAdmin(ReadOnlyAdmin):
    """Kernels and skills."""

    search_fields = ("digest",)
