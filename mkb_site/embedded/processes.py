"""Start the site's programs together, notice when one dies, and stop all that they started."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

GRACE_SEC = 5.0
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Program:
    """One program: its name for people, and its command line."""

    name: str
    command: Sequence[str]


@dataclass
class Group:
    """Programs that live and die together, each writing to its own log file."""

    logs: Path
    environment: Mapping[str, str]
    _running: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    def start(self, program: Program) -> None:
        """Start a program in a session of its own, so that Ctrl-C reaches only us."""
        self.logs.mkdir(parents=True, exist_ok=True)
        with self.log_of(program.name).open("ab") as log:
            self._running[program.name] = subprocess.Popen(
                program.command,
                env=dict(self.environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_die_with_parent,  # noqa: PLW1509
            )

    def log_of(self, name: str) -> Path:
        """Return the path of a program's log."""
        return self.logs / f"{name.replace(' ', '-')}.log"

    def dead(self) -> str | None:
        """Return the name of a program that ended by itself, if any did."""
        for name, process in self._running.items():
            if process.poll() is not None:
                return name
        return None

    def stop(self) -> None:
        """End every program and whatever it started: asked first, then made to."""
        for process in self._running.values():
            _signal(process, signal.SIGTERM)
        deadline = time.monotonic() + GRACE_SEC
        for process in self._running.values():
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                continue
        for process in self._running.values():
            _signal(process, signal.SIGKILL)
            process.wait()
        self._running.clear()


def celery(app: str, queue: str, *arguments: str) -> list[str]:
    """Return the command line of a worker on one queue."""
    return [
        *(sys.executable, "-m", "celery", "-A", app, "worker", "-Q", queue, "-n", f"{queue}@local"),
        *("--loglevel", "WARNING", "--without-gossip", "--without-mingle", "--without-heartbeat"),
        *arguments,
    ]


def _signal(process: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    """Signal a program's whole session; what it started may outlive it."""
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return


def _die_with_parent() -> None:
    """Have the kernel end this program when the launcher is killed outright (Linux only)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
