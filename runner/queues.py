"""Queue and task names, and how a Celery app of ours is set up; the doorbells between the rooms."""

from pathlib import Path
from typing import Any

from celery import Celery, current_app
from celery.result import AsyncResult

WEB = "web"
AGENT = "agent"

RUN_ATTEMPT = "agent.run_attempt"
CHECK_ENDPOINT = "agent.check_endpoint"
GRADE_KERNEL = "gpu.grade_kernel"
RECORD_EVENT = "web.record_event"
RECORD_REPORT = "web.record_report"
RECORD_PREFLIGHT = "web.record_preflight"
SWEEP = "web.sweep"


def gpu_queue(device: str) -> str:
    """Return the queue that grades on this device, one kernel at a time."""
    return f"gpu-{device}"


def queue_of(task: str) -> str:
    """Return the queue of a task that does not depend on a device."""
    return task.partition(".")[0]


def configure(app: Celery, *, broker_url: str, folder: str | None) -> Celery:
    """Set an app up for our broker.

    Args:
        app: a fresh Celery app.
        broker_url: `redis://…`, or `filesystem://` with `folder`.
        folder: where the filesystem broker and its results live; None with Redis.
    """
    options: dict[str, Any] = {"visibility_timeout": 21_600}
    backend = broker_url
    if folder is not None:
        for name in ("messages", "processed", "control", "results"):
            Path(folder, name).mkdir(parents=True, exist_ok=True)
        options = {
            "data_folder_in": f"{folder}/messages",
            "data_folder_out": f"{folder}/messages",
            "processed_folder": f"{folder}/processed",
            "control_folder": f"{folder}/control",
            "store_processed": False,
            "polling_interval": 0.1,
        }
        backend = f"file://{folder}/results"
        # Kombu warns of an address that names no host, even where none is meant.
        broker_url = "filesystem://localhost//"
        app.conf.broker_transport = "runner.letterbox:Transport"
    app.conf.update(
        broker_url=broker_url,
        result_backend=backend,
        broker_transport_options=options,
        broker_connection_retry_on_startup=True,
        task_serializer="json",
        result_serializer="json",
        accept_content=["json"],
        task_ignore_result=True,
        task_default_queue=WEB,
        task_create_missing_queues=True,
        task_acks_late=True,
        # A poison task would be delivered for ever; the ledger re-sends what was lost instead.
        task_reject_on_worker_lost=False,
        worker_prefetch_multiplier=1,
        worker_hijack_root_logger=False,
        worker_send_task_events=False,
        result_expires=3_600,
        enable_utc=True,
    )
    return app


def send(
    task: str,
    payload: dict[str, Any],
    *,
    queue: str | None = None,
    expires_sec: float | None = None,
) -> AsyncResult[Any]:
    """Put one message on its queue, by task name; a task registered here obeys eager mode.

    A worker that meets the message later than `expires_sec` from now drops it.
    """
    options: dict[str, Any] = {} if expires_sec is None else {"expires": expires_sec}
    return current_app.signature(task, args=(payload,)).apply_async(
        queue=queue or queue_of(task), **options
    )
