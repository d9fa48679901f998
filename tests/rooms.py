"""The project's programs, started for a test in a folder of their own and stopped after it."""

import contextlib
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parents[1]
POLL_SEC = 0.2


class Rooms:
    """A data folder with a database, keys and a broker, and the programs that work on them."""

    def __init__(self, folder: Path, *, broker: str = "filesystem://") -> None:
        self.folder = folder
        self.database = folder / "site.sqlite3"
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self.environment = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "mkb_site.settings.dev",
            "MKB_ALLOW_NETWORKS": "127.0.0.0/8",
            "MKB_BROKER": broker,
            "MKB_DATA": str(folder),
            "MKB_DATABASE": f"sqlite://{self.database}",
            "MKB_DEVICE": "cpu",
            "MKB_SEAL_PRIVATE_KEY_FILE": str(folder / "keys" / "seal-private"),
            "PYTHONUNBUFFERED": "1",
        }
        self.manage("migrate", "-v0")
        self.manage("sync_problems")

    def __enter__(self) -> "Rooms":
        return self

    def __exit__(self, *_exception: object) -> None:
        for process in self._running.values():
            _signal(process, signal.SIGTERM)
        for process in self._running.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            _signal(process, signal.SIGKILL)
            process.wait()

    def start(self, name: str, *command: str) -> None:
        """Start a program; what it says goes to its log."""
        with self._log(name).open("wb") as log:
            self._running[name] = subprocess.Popen(
                command,
                cwd=PROJECT,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def start_worker(self, app: str, queue: str, *options: str) -> None:
        """Start a Celery worker on one queue."""
        worker = ("-m", "celery", "-A", app, "worker", "-Q", queue, "-n", f"{queue}@test")
        self.start(queue, sys.executable, *worker, "--loglevel", "WARNING", *options)

    def start_workers(self) -> None:
        """Start a worker for each room: records, attempts, gradings on the CPU."""
        schedule = str(self.folder / "schedule")
        self.start_worker("mkb_site", "web", "--pool", "solo", "--beat", "--schedule", schedule)
        self.start_worker("runner.worker", "agent", "--pool", "threads", "--concurrency", "3")
        self.start_worker("runner.worker", "gpu-cpu", "--pool", "solo")

    def start_demo(self) -> str:
        """Start the scripted model and return its OpenAI address."""
        port = free_port()
        self.start("demo", sys.executable, "-m", "runner.demo", "--port", str(port))
        self.wait_until(lambda: _listens(port), "the demo server to listen", limit_sec=60)
        return f"http://127.0.0.1:{port}/v1"

    def kill(self, name: str) -> None:
        """End a program and all it started, without warning."""
        process = self._running.pop(name)
        _signal(process, signal.SIGKILL)
        process.wait()

    def manage(self, *arguments: str) -> str:
        """Run manage.py and return what it printed."""
        return self._python("manage.py", *arguments)

    def script(self, text: str) -> str:
        """Run Python lines on the site's side and return what they printed."""
        return self._python("-c", "import django; django.setup()\n" + textwrap.dedent(text))

    def ask(self, query: str) -> list[tuple[Any, ...]]:
        """Read the database."""
        connection = sqlite3.connect(f"file:{self.database}?mode=ro", uri=True, timeout=10)
        try:
            return connection.execute(query).fetchall()
        finally:
            connection.close()

    def wait_until(self, is_so: Callable[[], bool], what: str, *, limit_sec: float = 400.0) -> None:
        """Wait for something, or fail with the programs' last words."""
        deadline = time.monotonic() + limit_sec
        while not is_so():
            dead = [name for name, process in self._running.items() if process.poll() is not None]
            if dead or time.monotonic() > deadline:
                raise AssertionError(
                    f"waited for {what}; ended early: {dead}\n{self._last_words()}"
                )
            time.sleep(POLL_SEC)

    def _python(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=PROJECT,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def _last_words(self) -> str:
        return "\n".join(
            f"--- {name}\n{self._log(name).read_text(errors='replace')[-3_000:]}"
            for name in self._running
        )


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _signal(process: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return
