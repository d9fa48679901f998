"""What a child is started from: its folder, its command and environment, and where its log goes."""

import shutil
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import IO

from runner import sandbox
from runner.grader import limits
from runner.protocol import Dsl

_STAGED = ("__init__.py", "wire.py", "blocks.py", "clock.py", "forms.py", "child.py")
_PROJECT = Path(__file__).parent.parent.parent

# -I and -S keep the environment, the user's site and every .pth file out, so the project itself
# is not importable even where it is installed; the paths that packages live on follow as
# arguments. The staged folder is new, so no forged byte code can lie in it (-B writes none).
_START = (
    "import os, sys;"
    "sys.path[:0] = [os.getcwd()]; sys.path += sys.argv[4:];"
    "from runner.grader.child import main;"
    "main(int(sys.argv[1]), sys.argv[2], sys.argv[3])"
)


def stage(folder: Path, kernel: str) -> None:
    """Lay out what the child may see: the kernel and the few modules that serve it."""
    folder.chmod(0o755)
    package = folder / "runner" / "grader"
    package.mkdir(parents=True)
    (folder / "runner" / "__init__.py").touch()
    for name in _STAGED:
        shutil.copyfile(Path(__file__).parent / name, package / name)
    (folder / "kernel.py").write_text(kernel, encoding="utf-8")


def launch(folder: Path, fd: int, *, dsl: Dsl, device: str) -> sandbox.Sandboxed:
    """Start the child in its sandbox, with the socket `fd` as its only way to speak."""
    paths = _package_paths()
    argv = [sys.executable, "-I", "-S", "-B", "-u", "-c", _START, str(fd), dsl.value, device]
    environment = {"CUTE_DSL_DISABLE_FILE_CACHING": "1", "CUDA_CACHE_DISABLE": "1"}
    if device == "cpu":
        environment |= {"OMP_NUM_THREADS": "1", "TVM_NUM_THREADS": "1"}
    return sandbox.start(
        [*argv, *map(str, paths)],
        folder=folder,
        writable=False,
        limits=sandbox.Limits(
            memory_bytes=limits.HOST_MEMORY_BYTES[device],
            n_processes=limits.PROCESS_LIMIT,
            file_bytes=limits.FILE_LIMIT_BYTES,
            tmp_bytes=limits.SCRATCH_LIMIT_BYTES,
        ),
        read_only=_outside_interpreter(paths),
        pass_fds=[fd],
        environment=environment,
        gpu=device == "cuda",
    )


def _package_paths() -> list[Path]:
    """Return where packages are imported from, without the project and without what is in it."""
    script = Path(sys.argv[0]).resolve().parent
    own = (_PROJECT, script, Path.cwd())
    found = [Path(entry) for entry in dict.fromkeys(sys.path) if entry]
    return [
        path for path in found if path.is_absolute() and path.is_dir() and path.resolve() not in own
    ]


def _outside_interpreter(paths: list[Path]) -> list[Path]:
    """Return the paths that the sandbox does not show by itself."""
    shown = [Path(prefix) for prefix in (sys.prefix, sys.base_prefix)]
    return [path for path in paths if not any(path.is_relative_to(prefix) for prefix in shown)]


class LogTail:
    """Drains the child's stdout and stderr, keeping only the end."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._kept = bytearray()
        self._lock = threading.Lock()
        streams = [stream for stream in (process.stdout, process.stderr) if stream is not None]
        self._threads = [
            threading.Thread(target=self._drain, args=(stream,), daemon=True) for stream in streams
        ]
        for thread in self._threads:
            thread.start()

    @property
    def text(self) -> str:
        """What is kept so far."""
        with self._lock:
            return self._kept.decode(errors="replace").replace("\0", "�")

    def finish(self) -> None:
        """Wait for the last output of a child that has ended."""
        for thread in self._threads:
            thread.join(limits.EXIT_WAIT_SEC)

    def _drain(self, stream: IO[bytes]) -> None:
        with suppress(ValueError, OSError):
            while part := stream.read1(1 << 16):  # type: ignore[attr-defined]
                with self._lock:
                    self._kept += part
                    del self._kept[: -limits.LOG_TAIL_BYTES]
