"""The web side's Celery app: it sends orders, and its worker takes reports."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mkb_site.settings.dev")

from django.conf import settings

from runner import queues


def _app() -> Celery:
    app = Celery("mkb_site")
    is_embedded = settings.BROKER_URL.startswith("filesystem")
    queues.configure(
        app,
        broker_url=settings.BROKER_URL,
        folder=str(settings.BROKER_DIR) if is_embedded else None,
    )
    app.conf.update(
        task_always_eager=getattr(settings, "CELERY_EAGER", False),
        beat_schedule={"sweep": {"task": queues.SWEEP, "schedule": 15.0, "args": ({},)}},
    )
    app.autodiscover_tasks(["leaderboard"])
    # Web servers answer in threads, and Celery's "current app" is per thread.
    app.set_default()
    return app


app = _app()
