"""One launcher for commands that nobody trusts: the agent's shell and the grader's child."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from runner.sandbox import shell
from runner.sandbox.launch import launch
from runner.sandbox.room import FOLDER_INSIDE, Level, Limits, Room
from runner.sandbox.sandboxed import Sandboxed
from runner.sandbox.selftest import SandboxUnavailableError, level
from runner.sandbox.shell import Finished

__all__ = [
    "FOLDER_INSIDE",
    "Finished",
    "Level",
    "Limits",
    "SandboxUnavailableError",
    "Sandboxed",
    "level",
    "run",
    "start",
]


def start(  # noqa: PLR0913  (each is one independent wish; a caller names the few it has)
    argv: Sequence[str],
    *,
    folder: Path,
    writable: bool,
    limits: Limits,
    read_only: Sequence[Path] = (),
    pass_fds: Sequence[int] = (),
    environment: Mapping[str, str] | None = None,
    gpu: bool = False,
    cores: Sequence[int] | None = None,
) -> Sandboxed:
    """Start `argv` in a sandbox of this host's `level()`, in the folder, with no input.

    Inside are the system, this interpreter with its packages, a private /tmp and /dev/shm, and the
    paths given here; no network, and no right or variable of the caller. At NONE all files and the
    network are there, and only limits, the user and the killing as a whole remain.

    Args:
        argv: the program by absolute path or by name on the minimal PATH, and its arguments.
        folder: seen at `Sandboxed.folder_inside`. Started by root, a writable folder and all in it
            comes to belong to the sandbox's user; one that is read keeps its files' owners, which
            must let everyone read.
        writable: whether commands may change the folder; at NONE they can what its modes allow.
        limits: what all commands inside may use.
        read_only: further paths, seen where they are on the host.
        pass_fds: descriptors that stay open inside under the same numbers, and open here.
        environment: variables beside the fixed minimum, over which they win; the host's users can
            read them.
        gpu: whether to show the NVIDIA devices and their variables.
        cores: run on these alone; None for all.

    The kernel kills the sandbox when the thread that called this ends, so call it from one that
    outlives the sandbox.

    Raises:
        ValueError: a path or core that cannot be given.
        SandboxUnavailableError: MKB_SANDBOX names a level that does not work here.
    """
    room = Room(
        folder=folder,
        writable=writable,
        limits=limits,
        read_only=read_only,
        pass_fds=pass_fds,
        environment=environment or {},
        gpu=gpu,
        cores=cores,
    )
    return launch(argv, room, level=level())


def run(  # noqa: PLR0913  (as `start`)
    argv: Sequence[str],
    *,
    folder: Path,
    writable: bool,
    limits: Limits,
    timeout_sec: float,
    output_limit_bytes: int,
    read_only: Sequence[Path] = (),
    pass_fds: Sequence[int] = (),
    environment: Mapping[str, str] | None = None,
    gpu: bool = False,
    cores: Sequence[int] | None = None,
) -> Finished:
    """Start `argv` as `start` does, wait `timeout_sec` for it, and leave nothing running.

    Args:
        output_limit_bytes: what is kept of each stream, half from its beginning, half from its end.
    """
    sandboxed = start(
        argv,
        folder=folder,
        writable=writable,
        limits=limits,
        read_only=read_only,
        pass_fds=pass_fds,
        environment=environment,
        gpu=gpu,
        cores=cores,
    )
    return shell.finish(sandboxed, timeout_sec=timeout_sec, output_limit_bytes=output_limit_bytes)
