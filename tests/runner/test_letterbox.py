"""The folder broker between processes: every letter arrives whole, once, oldest first."""

import subprocess
import sys
import textwrap
import uuid
from pathlib import Path
from queue import Empty

import pytest
from celery import Celery
from kombu.exceptions import ChannelError

from runner import queues

WRITER = """
    import sys
    from celery import Celery
    from runner import queues
    app = queues.configure(Celery("writer"), broker_url="filesystem://", folder=sys.argv[1])
    with app.connection_for_write() as connection:
        box = connection.SimpleQueue("letters")
        for number in range(int(sys.argv[3])):
            box.put({"writer": sys.argv[2], "number": number, "padding": "x" * 20_000})
"""
READER = """
    import sys
    from queue import Empty
    from celery import Celery
    from runner import queues
    app = queues.configure(Celery("reader"), broker_url="filesystem://", folder=sys.argv[1])
    with app.connection_for_read() as connection:
        box = connection.SimpleQueue("letters")
        while True:
            try:
                message = box.get(timeout=5)
            except Empty:
                break
            message.ack()
            print(message.payload["writer"], message.payload["number"], flush=True)
"""


@pytest.fixture
def app(tmp_path: Path) -> Celery:
    app = Celery("letters", set_as_current=False)
    return queues.configure(app, broker_url="filesystem://", folder=str(tmp_path))


@pytest.fixture
def name() -> str:
    """A queue of the test's own: kombu remembers for the whole process which it has made."""
    return f"letters-{uuid.uuid4().hex}"


def start(script: str, *arguments: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", textwrap.dedent(script), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_two_writers_and_two_readers_lose_and_double_nothing(tmp_path: Path) -> None:
    folder = str(tmp_path)
    readers = [start(READER, folder) for _ in range(2)]
    writers = [start(WRITER, folder, name, "150") for name in ("one", "two")]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    told = [reader.communicate(timeout=60)[0].splitlines() for reader in readers]
    assert [reader.returncode for reader in readers] == [0, 0]
    expected = [f"{name} {number}" for name in ("one", "two") for number in range(150)]
    assert sorted(told[0] + told[1]) == sorted(expected)
    assert not list(tmp_path.glob("messages/*"))
    assert not list(tmp_path.glob("processed/*"))


def test_letters_arrive_oldest_first(app: Celery, name: str) -> None:
    with app.connection_for_write() as connection:
        box = connection.SimpleQueue(name)
        for number in range(12):
            box.put(number)
        assert [box.get(timeout=1).payload for _ in range(12)] == list(range(12))
        with pytest.raises(Empty):
            box.get_nowait()


def test_a_letter_still_being_written_is_not_seen(app: Celery, tmp_path: Path, name: str) -> None:
    with app.connection_for_read() as connection:
        box = connection.SimpleQueue(name)
        (tmp_path / "messages" / f"1_a.{name}.msg.b.part").write_text("half a let")
        with pytest.raises(Empty):
            box.get_nowait()


def test_a_folder_that_takes_no_letter_is_an_error_with_its_reason(
    app: Celery, tmp_path: Path, name: str
) -> None:
    with app.connection_for_write() as connection:
        box = connection.SimpleQueue(name)
        (tmp_path / "messages").rmdir()
        with pytest.raises(ChannelError, match="cannot be written"):
            box.put("lost")
