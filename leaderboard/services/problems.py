"""Bring the catalogue's rows in line with its files."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db import transaction

from leaderboard.models import Problem
from problems import catalog


@dataclass(frozen=True)
class SyncResult:
    """The slugs that were touched."""

    created: tuple[str, ...]
    changed: tuple[str, ...]
    retired: tuple[str, ...]


@transaction.atomic
def sync(problems: Sequence[catalog.Problem] | None = None) -> SyncResult:
    """Create, change and retire rows until they say what the files say. Safe to repeat.

    A problem that left the files is retired, for trials point at it; one that returns is revived.
    """
    listed = catalog.all_problems() if problems is None else problems
    rows = Problem.objects.in_bulk()
    created, changed = [], []
    for problem in listed:
        wanted = {
            "slug": problem.slug,
            "family": problem.family,
            "title": problem.title,
            "source": problem.source,
            "fingerprint": problem.fingerprint,
            "is_retired": False,
        }
        row = rows.pop(problem.number, None)
        if row is None:
            Problem.objects.create(number=problem.number, **wanted)
            created.append(problem.slug)
        elif any(getattr(row, name) != value for name, value in wanted.items()):
            Problem.objects.filter(pk=row.pk).update(**wanted)
            changed.append(problem.slug)
    gone = [row for row in rows.values() if not row.is_retired]
    Problem.objects.filter(pk__in=[row.pk for row in gone]).update(is_retired=True)
    return SyncResult(tuple(created), tuple(changed), tuple(row.slug for row in gone))
