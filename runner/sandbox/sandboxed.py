"""A started sandbox: its process, its memory watch, and its end."""

import contextlib
import os
import shutil
import signal
import subprocess
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from runner.sandbox import tree
from runner.sandbox.room import FOLDER_INSIDE, Level, Room
from runner.sandbox.slots import Slot

_WATCH_INTERVAL_SEC = 0.2
_ORDERLY_END_SEC = 5.0


class Sandboxed:
    """A command in its sandbox. Use it as a context manager, or call `kill` when done.

    Attributes:
        process: stands for the whole sandbox: it ends when the command ends or everything inside
            was killed. A command killed by a signal gives 128 + its number (at NONE: minus it).
        folder_inside: the path at which commands see the folder.
        level: the isolation that this sandbox has.
        uid: the host's user that commands run as; None for the caller's own.
    """

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        room: Room,
        *,
        level: Level,
        slot: Slot | None,
        scratch: Path | None,
    ) -> None:
        self.process = process
        self.level = level
        self.folder_inside = FOLDER_INSIDE if level.isolates else str(room.folder.resolve())
        self.uid = slot.uid if slot else None
        self._slot = slot
        self._scratch = scratch
        self._memory_bytes = room.limits.memory_bytes
        self._over_memory = False
        self._ended = threading.Event()
        self._killing = threading.Lock()
        threading.Thread(target=self._watch_memory, daemon=True, name="sandbox-memory").start()

    @property
    def over_memory(self) -> bool:
        """Whether the sandbox was killed for using more memory than its limit."""
        return self._over_memory

    def kill(self) -> None:
        """End everything inside and wait for it to be gone; safe to repeat and after the end.

        At NONE, of an ordinary user's sandbox, only what stayed in its process group can be found.
        """
        with self._killing:
            if self._ended.is_set():
                return
            if self.level.isolates:
                self._kill_namespace()
            elif self.uid is not None:
                self._kill_user(self.uid)
            else:
                self._kill_group()
            self._ended.set()
            if self._scratch is not None:
                shutil.rmtree(self._scratch, ignore_errors=True)
            if self._slot is not None:
                self._slot.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    def _kill_namespace(self) -> None:
        # Killing the launcher would do too, but tell us nothing of when the rest is gone.
        if self.process.poll() is None:
            tree.kill_below(self.process.pid, timeout_sec=_ORDERLY_END_SEC)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(_ORDERLY_END_SEC)
        self.process.kill()
        self.process.wait()

    def _kill_user(self, uid: int) -> None:
        self.process.kill()
        # As that user, "all" means what this sandbox started, in whatever group or session.
        subprocess.run(
            ["sh", "-c", "kill -KILL -1"],
            user=uid,
            group=uid,
            extra_groups=[],
            check=False,
            stderr=subprocess.DEVNULL,
        )
        self.process.wait()

    def _kill_group(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def _watch_memory(self) -> None:
        # A kernel limit for the sum would need a control group, which containers rarely let us
        # make. RLIMIT_DATA stops one process at once; this stops the sum a moment later.
        while not self._ended.wait(_WATCH_INTERVAL_SEC):
            if self.process.returncode is not None:
                return
            pids = [self.process.pid, *tree.descendants(self.process.pid)]
            if tree.held_bytes(pids) > self._memory_bytes:
                self._over_memory = True
                self.kill()
                return
