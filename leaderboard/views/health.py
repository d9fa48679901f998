"""Liveness for machines: the database, the broker, and how long work has been waiting."""

from dataclasses import asdict, dataclass

from celery import current_app
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.db.models import Min
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from kombu.exceptions import OperationalError

from leaderboard.models import Trial

_BROKER_WAIT_SEC = 2


@dataclass(frozen=True)
class Health:
    """The answer; None where the database could not be asked."""

    database: bool
    pending_migrations: int | None
    broker: bool
    oldest_queued_sec: float | None


@require_safe
@never_cache
def healthz(_request: HttpRequest) -> HttpResponse:
    """Say how the site is: 503 while the database does not answer, 200 otherwise."""
    health = _look()
    return JsonResponse(asdict(health), status=200 if health.database else 503)


def _look() -> Health:
    broker = _broker_answers()
    try:
        connection.ensure_connection()
        executor = MigrationExecutor(connection)
        pending = len(executor.migration_plan(executor.loader.graph.leaf_nodes()))
        age = _oldest_queued_sec() if pending == 0 else None
    except DatabaseError:
        return Health(False, None, broker, None)
    return Health(True, pending, broker, age)


def _oldest_queued_sec() -> float | None:
    queued = Trial.objects.filter(status=Trial.Status.QUEUED)
    oldest = queued.aggregate(oldest=Min("queued_at"))["oldest"]
    return round((timezone.now() - oldest).total_seconds(), 1) if oldest else None


def _broker_answers() -> bool:
    with current_app.connection_for_write() as broker:
        try:
            broker.ensure_connection(max_retries=1, timeout=_BROKER_WAIT_SEC)
        except (OSError, OperationalError):
            return False
    return True
