"""Which level this host can give, found by starting one of each and looking around inside."""

import functools
import json
import os
import sys
import tempfile
from pathlib import Path

from runner.sandbox import shell
from runner.sandbox.launch import launch
from runner.sandbox.room import Level, Limits, Room

FORCED_BY = "MKB_SANDBOX"

_TIMEOUT_SEC = 20.0
_OUTPUT_BYTES = 4096
_MEMORY_BYTES = 1 << 30

# Run inside: prints what an isolated command would have to be, as JSON.
_PROBE = """
import json, os, socket, sys
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
def opens(path, mode):
    try:
        open(path, mode).close()
    except OSError:
        return False
    return True
print(json.dumps({
    "keeps capabilities": int(status["CapEff"], 16) != 0,
    "may gain rights": status["NoNewPrivs"].strip() != "1",
    "has no system call filter": status["Seccomp"].strip() != "2",
    "has a network": [name for _, name in socket.if_nameindex()] != ["lo"],
    "sees a private file of the host": opens(sys.argv[1], "rb"),
    "can write to the kernel's settings": opens("/proc/sys/kernel/core_pattern", "r+b"),
    "can write to the system": os.access("/usr", os.W_OK),
}))
"""


class SandboxUnavailableError(Exception):
    """The level asked for cannot be had on this host; the sentence says why."""


def level() -> Level:
    """Return the strongest level that works here, or the one that MKB_SANDBOX names.

    The first call starts real sandboxes; later ones in the same process remember the answer.

    Raises:
        SandboxUnavailableError: the named level is unknown or does not work here.
    """
    return _level(os.environ.get(FORCED_BY) or None)


@functools.cache
def _level(forced: str | None) -> Level:
    if forced is None:
        return next(level for level in Level if flaw(level) is None)
    try:
        wanted = Level(forced)
    except ValueError as error:
        raise SandboxUnavailableError(
            f"{FORCED_BY}={forced}: unknown; name one of {', '.join(Level)}"
        ) from error
    reason = flaw(wanted)
    if reason is not None:
        raise SandboxUnavailableError(f"{FORCED_BY}={forced} does not work on this host: {reason}")
    return wanted


@functools.cache
def flaw(level: Level) -> str | None:
    """Say why `level` cannot be had here; None if it works. NONE needs no more than it gets."""
    if not level.isolates:
        return None
    with tempfile.TemporaryDirectory() as name:
        secret, folder = Path(name, "secret"), Path(name, "folder")
        secret.write_text("of the host")
        secret.chmod(0o644)
        folder.mkdir()
        room = Room(folder, writable=False, limits=Limits(memory_bytes=_MEMORY_BYTES))
        argv = [sys.executable, "-I", "-S", "-c", _PROBE, str(secret)]
        try:
            box = launch(argv, room, level=level)
            found = shell.finish(box, timeout_sec=_TIMEOUT_SEC, output_limit_bytes=_OUTPUT_BYTES)
        except (OSError, NotImplementedError) as error:
            return str(error)
    if found.returncode != 0:
        last_line = found.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        return last_line or f"it ended with code {found.returncode}"
    answers: dict[str, bool] = json.loads(found.stdout)
    faults = [fault for fault, is_so in answers.items() if is_so]
    return f"a command inside {', '.join(faults)}" if faults else None
