"""A filesystem broker of the test's own, for what is sent from the test's process."""

from collections.abc import Iterator
from pathlib import Path

import celery
import pytest
from celery import _state

from runner import queues


@pytest.fixture
def filesystem_broker(tmp_path: Path) -> Iterator[Path]:
    """The broker's folder; while the test runs, this process sends to it."""
    folder = tmp_path / "broker"
    for name in ("messages", "processed", "control", "results"):
        (folder / name).mkdir(parents=True)
    with sending_to(folder):
        yield folder


class sending_to:  # noqa: N801  (reads as a verb in a with statement)
    """Make the app of a filesystem broker this process's own, and put the old one back."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> celery.Celery:
        self._before = (celery.current_app._get_current_object(), _state.default_app)
        app = celery.Celery("tests", set_as_current=False)
        queues.configure(app, broker_url="filesystem://", folder=str(self._folder))
        app.set_current()
        app.set_default()  # the current app is this thread's alone
        return app

    def __exit__(self, *_: object) -> None:
        current, _state.default_app = self._before
        current.set_current()
