"""The doors of agent and GPU hosts: decode an order, call, send the answer home by name."""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from celery import shared_task
from kombu.exceptions import KombuError

from runner import attempt, queues, sealing
from runner.endpoint import ChatModel, EndpointError, Patience, connect, parse_networks
from runner.endpoint import preflight as preflights
from runner.judge import LocalJudge, QueueJudge
from runner.messages import (
    AttemptEvent,
    AttemptOrder,
    AttemptReport,
    Endpoint,
    GradeOrder,
    PreflightOrder,
    PreflightReport,
    Usage,
)
from runner.protocol import EndReason

logger = logging.getLogger(__name__)

HEARTBEAT_SEC = 15.0
REPORT_TRIES = 20
REPORT_PAUSE_SEC = 15.0
PREFLIGHT_TURN_LIMIT_SEC = 90.0


@shared_task(name=queues.RUN_ATTEMPT)
def run_attempt(payload: dict[str, Any]) -> None:
    """Make one attempt; whatever happens, a report goes home."""
    order = AttemptOrder.from_json(payload)
    with _heartbeat(order):
        try:
            report = _attempted(order)
        except Exception as error:
            # The boundary of this process: a fault that nobody foresaw must not lose the trial.
            logger.exception("attempt of trial %s failed", order.trial_id)
            report = _infrastructure(order, error)
    _send_surely(queues.RECORD_REPORT, report.to_json())


@shared_task(name=queues.CHECK_ENDPOINT)
def check_endpoint(payload: dict[str, Any]) -> None:
    """Try an endpoint once and send home what it answered."""
    order = PreflightOrder.from_json(payload)
    patience = Patience(n_tries=1, turn_limit_sec=PREFLIGHT_TURN_LIMIT_SEC)
    try:
        check = preflights.check(_connected(order.endpoint, patience), order.endpoint.model_id)
    except EndpointError as error:
        check = preflights.failed(error)
    except sealing.SealError as error:
        check = preflights.failed_in_words(str(error))
    report = PreflightReport(
        entry_id=order.entry_id,
        check_token=order.check_token,
        passed=check.passed,
        summary=check.summary,
        steps=check.steps,
    )
    _send_surely(queues.RECORD_PREFLIGHT, report.to_json())


@shared_task(name=queues.GRADE_KERNEL, ignore_result=False)
def grade_kernel(payload: dict[str, Any]) -> dict[str, Any]:
    """Grade one kernel on this host and return the verdict."""
    order = GradeOrder.from_json(payload)
    return LocalJudge(order).grade(order.kernel).to_json()


def _attempted(order: AttemptOrder) -> AttemptReport:
    grading = GradeOrder(
        problem=order.problem,
        dsl=order.arm.dsl.value,
        kernel="",
        device=order.device,
        workload=order.workload,
    )
    return attempt.run_attempt(
        order,
        model=_connected(order.endpoint, Patience()),
        judge=QueueJudge(grading),
        tell=_tell,
    )


def _connected(endpoint: Endpoint, patience: Patience) -> ChatModel:
    networks = parse_networks(os.environ.get("MKB_ALLOW_NETWORKS", ""))
    return connect(endpoint, _opened_key(endpoint), networks, patience=patience)


def _opened_key(endpoint: Endpoint) -> str:
    """Open the endpoint's key; an endpoint without one has none to open.

    Raises:
        SealError: this host has no private key, or it does not open this one.
    """
    if not endpoint.sealed_key:
        return ""
    private_key = os.environ.get("MKB_SEAL_PRIVATE_KEY", "")
    if path := os.environ.get("MKB_SEAL_PRIVATE_KEY_FILE"):
        try:
            private_key = Path(path).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise sealing.SealError(f"the sealing key cannot be read: {error.strerror}") from error
    if not private_key:
        raise sealing.SealError("this host has no sealing key; set MKB_SEAL_PRIVATE_KEY_FILE")
    return sealing.open_sealed(
        endpoint.sealed_key, base_url=endpoint.base_url, private_key=private_key
    )


def _infrastructure(order: AttemptOrder, error: Exception) -> AttemptReport:
    """Return the report of an attempt that this host could not make."""
    is_ours = isinstance(error, attempt.OrderRefusedError | sealing.SealError | EndpointError)
    return AttemptReport(
        trial_id=order.trial_id,
        lease_token=order.lease_token,
        end_reason=EndReason.INFRASTRUCTURE,
        # Other messages may quote anything, a key included, so they stay in this host's log.
        detail=str(error) if is_ours else f"the agent host failed with {type(error).__name__}",
        kernel=None,
        skill=None,
        verdict=None,
        usage=Usage(),
    )


@contextmanager
def _heartbeat(order: AttemptOrder, *, interval_sec: float = HEARTBEAT_SEC) -> Iterator[None]:
    """Say every few seconds that the attempt is alive, from a thread of its own."""
    over = threading.Event()
    began_at = time.monotonic()

    def beat() -> None:
        while not over.wait(interval_sec):
            _tell(
                AttemptEvent(
                    trial_id=order.trial_id,
                    lease_token=order.lease_token,
                    sequence=0,  # not part of the record, so not numbered with it
                    kind="heartbeat",
                    elapsed_sec=time.monotonic() - began_at,
                )
            )

    thread = threading.Thread(target=beat, name=f"heartbeat-{order.trial_id}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _tell(event: AttemptEvent) -> None:
    """Send an event; one that the broker does not take is lost, and the attempt goes on."""
    try:
        queues.send(queues.RECORD_EVENT, event.to_json())
    except (KombuError, OSError):
        logger.warning("event %s of trial %s not sent", event.sequence, event.trial_id)


def _send_surely(
    task: str, payload: dict[str, Any], *, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Send what must not be lost, again and again while the broker is away.

    Raises:
        KombuError, OSError: it stayed away; the ledger's lease runs out and the trial is redone.
    """
    for _ in range(REPORT_TRIES - 1):
        try:
            queues.send(task, payload)
        except (KombuError, OSError):
            logger.warning("%s not sent; the broker does not answer", task)
            sleep(REPORT_PAUSE_SEC)
        else:
            return
    queues.send(task, payload)
