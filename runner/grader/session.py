"""One child: starts it in the sandbox, asks it, watches it, ends it; believes nothing it says."""

import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from runner import sandbox
from runner.grader import clocks, faults, limits, staging, wire
from runner.grader.faults import HostError, KernelError
from runner.protocol import Dsl, Outcome


@dataclass(frozen=True)
class Returned:
    """One call of solve: the child's claim, and what the parent saw by its own clocks.

    `cpu_ns` and `waited_ns` as in `clocks.Reading`, during the call.
    """

    claimed_ns: int
    wall_ns: int
    cpu_ns: int | None
    waited_ns: int
    form: wire.Message
    written: bool
    seen: tuple[str, ...]


class Session:
    """A running child, from its start to its end; use as a context manager."""

    def __init__(self, kernel: str, *, dsl: Dsl, device: str, deadline: float) -> None:
        """Start the child; it goes on importing while the caller does something else.

        Args:
            kernel: the text of kernel.py.
            dsl: the only DSL that the child loads.
            device: "cpu" or "cuda".
            deadline: when the child is killed, on the clock of time.monotonic().

        Raises:
            HostError: no sandbox could be started.
        """
        self.deadline = deadline
        self._start_deadline: float | None = time.monotonic() + limits.START_LIMIT_SEC
        self._doing = "starting"
        self._call = 0
        self._folder = Path(tempfile.mkdtemp(prefix="grading-"))
        ours, theirs = socket.socketpair()
        self._channel = wire.Channel(ours)
        self._channel.know_peer()
        try:
            staging.stage(self._folder, kernel)
            self._sandboxed = staging.launch(self._folder, theirs.fileno(), dsl=dsl, device=device)
        except (OSError, ValueError, sandbox.SandboxUnavailableError) as error:
            ours.close()
            shutil.rmtree(self._folder, ignore_errors=True)
            raise HostError(f"the sandbox could not be started: {error}") from error
        finally:
            theirs.close()
        self._clocks = clocks.ChildClocks(None)
        self._log = staging.LogTail(self._sandboxed.process)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    def end(self) -> None:
        """End the child and all that it started, and remove its folder; safe to repeat."""
        self._sandboxed.kill()
        self._channel.close()
        self._clocks.close()
        self._log.finish()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def isolation(self) -> str:
        """How strongly the child is shut in: the sandbox's level."""
        return self._sandboxed.level.value

    @property
    def log_tail(self) -> str:
        """The end of what the child printed; only to be shown, never read as an answer."""
        return self._log.text

    @property
    def pid(self) -> int | None:
        """The child's process as this host numbers it; None before it was ready."""
        return self._channel.peer_pid

    def ready(self) -> dict[str, str]:
        """Wait for the imports of torch and the DSL; return the versions that the child loaded.

        Raises:
            HostError: they failed. No line of the kernel has run yet, so the fault is ours.
        """
        try:
            answer = self._answer("ready")
        except KernelError as fault:
            self._sandboxed.kill()
            self._log.finish()
            raise HostError(f"{fault}; it printed: {self.log_tail.strip()[-1_000:]}") from fault
        self._start_deadline = None
        self._clocks = clocks.ChildClocks(self.pid)
        return {str(name): str(value) for name, value in answer["versions"].items()}

    def load(self, watch: Sequence[str]) -> tuple[str, ...]:
        """Import kernel.py; return which of the watched modules it brought in."""
        answer = self._ask("loaded", {"kind": "load", "watch": list(watch)}, doing="importing it")
        return _names(answer["seen"])

    def hold(
        self, inputs: Sequence[wire.Message], outputs: Sequence[wire.Message], fds: Sequence[int]
    ) -> None:
        """Hand over one call's inputs and the blocks that its outputs go to."""
        request = {"kind": "hold", "inputs": list(inputs), "outputs": list(outputs)}
        self._ask("held", request, fds=fds, doing="taking its inputs")

    def release(self) -> None:
        """Have the child let go of what it holds, which must precede freeing a GPU's memory."""
        self._ask("held", {"kind": "release"}, doing="letting go of its inputs")

    def go(self) -> Returned:
        """Have solve called once on what is held; the wall clock ends when the outputs are there.

        Raises:
            KernelError: it raised, died, hung, or said what no honest child says.
        """
        before = self._clocks.read()
        answer = self._ask("returned", {"kind": "go"}, doing="running solve")
        after = self._clocks.read()
        return Returned(
            claimed_ns=answer["elapsed_ns"],
            wall_ns=after.wall_ns - before.wall_ns,
            cpu_ns=clocks.difference(before.cpu_ns, after.cpu_ns),
            waited_ns=clocks.difference(before.waited_ns, after.waited_ns) or 0,
            form=answer["form"],
            written=answer["written"],
            seen=_names(answer["seen"]),
        )

    def _ask(
        self, kind: str, request: wire.Message, *, doing: str, fds: Sequence[int] = ()
    ) -> wire.Message:
        self._call += 1
        self._doing = doing
        try:
            if not self._channel.is_quiet():
                raise KernelError(Outcome.TAMPERING, "the kernel wrote to the grader's channel")
            self._channel.send({**request, "call": self._call}, fds)
        except wire.ClosedError:
            raise self._death() from None
        return self._answer(kind)

    def _answer(self, wanted: str) -> wire.Message:
        try:
            message, _ = self._channel.receive(patience=self._patience)
            kind = wire.check_reply(message, self._call)
        except wire.ClosedError:
            raise self._death() from None
        except wire.WireError as error:
            raise KernelError(
                Outcome.TAMPERING, f"the kernel wrote to the grader's channel: {error}"
            ) from error
        if kind == "failed":
            raise faults.of_exception(message["error"], loading=wanted == "loaded")
        if kind != wanted:
            raise KernelError(Outcome.TAMPERING, f"the child answered {kind} instead of {wanted}")
        return message

    def _patience(self) -> float:
        """Return how long to wait before looking at the clock again, or raise."""
        now = time.monotonic()
        if now >= self.deadline:
            raise KernelError(Outcome.TIMEOUT, f"time ran out while {self._doing}")
        if self._start_deadline is not None and now >= self._start_deadline:
            raise KernelError(Outcome.TIMEOUT, f"no answer in {limits.START_LIMIT_SEC:g} s")
        # A process that the kernel left behind may keep the channel open after its end.
        if self._sandboxed.process.poll() is not None and self._channel.is_quiet():
            raise self._death()
        return limits.WATCH_INTERVAL_SEC

    def _death(self) -> KernelError:
        try:
            returncode = self._sandboxed.process.wait(limits.EXIT_WAIT_SEC)
        except subprocess.TimeoutExpired:
            returncode = None
        return faults.of_death(
            returncode, over_memory=self._sandboxed.over_memory, doing=self._doing
        )


def _names(seen: Any) -> tuple[str, ...]:
    return tuple(item for item in seen if isinstance(item, str))
