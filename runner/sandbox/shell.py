"""Run one command in a sandbox to its end, under a clock and with bounded output."""

import os
import subprocess
import threading
from dataclasses import dataclass
from typing import IO

from runner.sandbox.sandboxed import Sandboxed

_CHUNK_BYTES = 1 << 16
_READERS_END_SEC = 2.0


@dataclass(frozen=True)
class Finished:
    """What came of a command.

    Attributes:
        returncode: 128 + the signal for a command killed by one; None if its time ran out.
        stdout: the bytes written, or their beginning and end with a note of the gap between.
        stderr: likewise.
        timed_out: whether it was killed because its time ran out.
        n_dropped_bytes: how many bytes of both streams are missing.
        over_memory: whether it was killed for using too much memory.
    """

    returncode: int | None
    stdout: bytes
    stderr: bytes
    timed_out: bool
    n_dropped_bytes: int
    over_memory: bool = False


def finish(sandboxed: Sandboxed, *, timeout_sec: float, output_limit_bytes: int) -> Finished:
    """Wait for the command, kill all it leaves behind, keep `output_limit_bytes` of each stream."""
    with sandboxed as box:
        process = box.process
        assert process.stdout is not None  # noqa: S101  (both are pipes: launch made them so)
        assert process.stderr is not None  # noqa: S101
        readers = [
            _Reader(stream, output_limit_bytes) for stream in (process.stdout, process.stderr)
        ]
        timed_out = False
        try:
            process.wait(timeout_sec)
        except subprocess.TimeoutExpired:
            timed_out = True
        box.kill()
        stdout, stderr = (reader.finish() for reader in readers)
    code = process.returncode
    return Finished(
        returncode=None if timed_out else code if code >= 0 else 128 - code,
        stdout=stdout,
        stderr=stderr,
        timed_out=timed_out,
        n_dropped_bytes=sum(reader.n_dropped_bytes for reader in readers),
        over_memory=box.over_memory,
    )


class _Reader:
    """Keeps a stream's first and last bytes, and reads all between so that its writer goes on."""

    def __init__(self, stream: IO[bytes], limit_bytes: int) -> None:
        self._stream = stream
        self._head_bytes = limit_bytes - limit_bytes // 2
        self._tail_bytes = limit_bytes // 2
        self._head = bytearray()
        self._tail = bytearray()
        self.n_dropped_bytes = 0
        self._thread = threading.Thread(target=self._read, daemon=True, name="sandbox-output")
        self._thread.start()

    def finish(self) -> bytes:
        """Return what was kept, with a note in place of what was not."""
        # Nobody inside is left to hold the pipe, save a daemon that fled from level NONE.
        self._thread.join(_READERS_END_SEC)
        if not self.n_dropped_bytes:
            return bytes(self._head + self._tail)
        note = f"\n[{self.n_dropped_bytes} bytes left out]\n".encode()
        return bytes(self._head) + note + bytes(self._tail)

    def _read(self) -> None:
        while chunk := os.read(self._stream.fileno(), _CHUNK_BYTES):
            room = self._head_bytes - len(self._head)
            self._head += chunk[:room]
            self._tail += chunk[room:]
            excess = len(self._tail) - self._tail_bytes
            if excess > 0:
                del self._tail[:excess]
                self.n_dropped_bytes += excess
