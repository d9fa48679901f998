"""The Celery app of agent and GPU hosts, set up from the environment alone.

    celery -A runner.worker worker -Q agent --pool threads --concurrency 3
    celery -A runner.worker worker -Q gpu-cpu --pool solo

Reads MKB_BROKER (filesystem://, the default, or redis://…) and, for the former, MKB_DATA.
"""

import os
from pathlib import Path

from celery import Celery

from runner import queues


class BadEnvironmentError(Exception):
    """An environment that no worker can be set up from."""


def make_app() -> Celery:
    """Return the app, with the tasks of `runner.tasks`.

    Raises:
        BadEnvironmentError: the filesystem broker has no folder to live in.
    """
    app = Celery("runner", include=["runner.tasks"])
    broker_url = os.environ.get("MKB_BROKER", "filesystem://")
    folder = _broker_folder() if broker_url.startswith("filesystem") else None
    queues.configure(app, broker_url=broker_url, folder=folder)
    app.set_default()
    return app


def _broker_folder() -> str:
    data = os.environ.get("MKB_DATA")
    if not data:
        raise BadEnvironmentError(
            "MKB_DATA is not set; set it to the folder that the site keeps its broker in, or set"
            " MKB_BROKER=redis://…"
        )
    folder = Path(data).resolve() / "broker"
    for name in ("messages", "processed", "control", "results"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    return str(folder)


app = make_app()
