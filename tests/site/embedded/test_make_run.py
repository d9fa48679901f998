"""`make run` as a person meets it: it serves, refuses a second start, stops all, and goes on."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from mkb_site.embedded import place as places

pytestmark = pytest.mark.e2e

START_LIMIT_SEC = 120


class Launched:
    """One `make run`, with what it prints."""

    def __init__(self, folder: Path, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.output = folder / f"printed-{time.monotonic_ns()}.txt"
        clean = {key: value for key, value in os.environ.items() if not key.startswith("MKB_")}
        clean.pop("DJANGO_SETTINGS_MODULE", None)
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "mkb_site.embedded"],
                env={**clean, "PORT": str(port), "MKB_DATA": str(folder / "data")},
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def prints(self, words: str) -> bool:
        """Wait until it has printed these words; False when it ends before."""
        deadline = time.monotonic() + START_LIMIT_SEC
        while time.monotonic() < deadline and self.process.poll() is None:
            if words in self.output.read_text():
                return True
            time.sleep(0.1)
        return words in self.output.read_text()

    def interrupt(self) -> int:
        """Press Ctrl-C; return the exit status."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=60)

    def children(self) -> list[int]:
        """Return the programs that it started."""
        listed = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(pid) for pid in listed.split()]


@pytest.fixture
def launch(tmp_path: Path) -> Iterator:
    """A function that starts `make run` on the test's own folder."""
    started: list[Launched] = []

    def start(port: int) -> Launched:
        started.append(Launched(tmp_path, port))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()


def test_it_serves_refuses_a_second_start_and_leaves_nothing_behind(launch, tmp_path: Path) -> None:
    port = places.free_port(20_000)
    first = launch(port)
    assert first.prints(f"The board is at {first.url}"), first.output.read_text()
    with urllib.request.urlopen(f"{first.url}/api/v1/rankings") as answer:
        rows = json.load(answer)
    assert {row["scripted"] for row in rows} == {True}
    assert {row["n_planned"] for row in rows} == {6}
    assert {row["direction"] for row in rows} == {"cutedsl2tirx", "tirx2cutedsl"}

    second = launch(places.free_port(port + 1))
    assert second.process.wait(timeout=60) == 1
    assert "Another `make run` uses the data folder" in second.output.read_text()

    children = first.children()
    assert len(children) == 5
    assert first.interrupt() == 0
    assert not [pid for pid in children if Path(f"/proc/{pid}").exists()]

    again = launch(port)
    assert again.prints("press Ctrl-C to stop everything")
    assert "Started run" in first.output.read_text()
    assert "Started run" not in again.output.read_text(), "the demo run goes on, it is not repeated"
    assert again.interrupt() == 0


def test_a_missing_key_is_one_sentence(tmp_path: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-m", "mkb_site.embedded"],
        env={
            "PATH": os.environ["PATH"],
            "PORT": str(places.free_port(21_000)),
            "MKB_DATA": str(tmp_path),
            "ENTRY": "anthropic:some-model",
        },
        capture_output=True,
        text=True,
        timeout=START_LIMIT_SEC,
        check=False,
    )
    assert told.returncode == 1
    assert "needs a key: set ANTHROPIC_API_KEY and try again." in told.stderr
    assert "Traceback" not in told.stderr
