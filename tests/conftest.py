"""What every test shares: the rule about skips, and a real broker to look into."""

import os
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from queue import Empty
from typing import Any

import pytest
from celery import Celery

from runner import queues


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, Any]:
    """Where CI says that everything is there, a skipped test hides a missing service: it fails."""
    return _judged((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, Any, Any]:
    """Likewise a module that skips itself."""
    return _judged((yield))


def _judged(report: Any) -> Any:
    if os.environ.get("CI") and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, which counts as a failure where CI is set: {report.longrepr}"
    return report


@dataclass(frozen=True)
class Letter:
    """A message as it lies on its queue."""

    task: str
    payload: dict[str, Any]
    expires: str | None


@dataclass(frozen=True)
class Mailroom:
    """The broker's queues, with nobody working on them."""

    app: Celery

    def take(self, queue: str) -> list[Letter]:
        """Empty a queue, oldest letter first."""
        letters = []
        with self.app.connection_for_read() as connection:
            box = connection.SimpleQueue(queue)
            try:
                while True:
                    message = box.get_nowait()
                    message.ack()
                    (payload,), _, _ = message.payload
                    headers = message.headers
                    letters.append(Letter(headers["task"], payload, headers["expires"]))
            except Empty:
                return letters
            finally:
                box.close()


@pytest.fixture
def in_place() -> Iterator[Celery]:
    """Tasks by name run where they are sent, in every thread, through the site's app."""
    from celery import _state

    import leaderboard.tasks  # noqa: F401 - a task runs in place only once it is registered
    from mkb_site.celery import app

    # Tests of the workers make apps of their own, and the last one made is everyone's.
    before = _state.default_app
    app.set_current()
    app.set_default()
    yield app
    _state.default_app = before


@pytest.fixture
def mailroom(in_place: Celery) -> Iterator[Mailroom]:
    """Messages go to the real filesystem broker and stay there."""
    room = Mailroom(in_place)
    in_place.conf.task_always_eager = False
    for queue in (queues.WEB, queues.AGENT, queues.gpu_queue("cpu")):
        room.take(queue)
    yield room
    in_place.conf.task_always_eager = True
