"""What a caller asks of a sandbox: level, limits, folder and what may be seen inside."""

import os
import resource
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

FOLDER_INSIDE = "/sandbox"
TMP_INSIDE = "/tmp"  # noqa: S108  (the sandbox's own tmpfs, not the host's folder)
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_MiB = 1 << 20
_GPU_VARIABLES = ("CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH", "NVIDIA_VISIBLE_DEVICES")
_CUDA_HOME = Path("/usr/local/cuda")


class Level(StrEnum):
    """How strongly a sandbox isolates, strongest first; the value is stored with each result."""

    BUBBLEWRAP = "bubblewrap"
    NAMESPACES = "namespaces"
    NONE = "none"

    @property
    def isolates(self) -> bool:
        """False for NONE alone, which limits and kills but hides neither files nor network."""
        return self is not Level.NONE


@dataclass(frozen=True)
class Limits:
    """What the commands in one sandbox may use.

    Attributes:
        memory_bytes: resident memory of all of them together, shared mappings of passed descriptors
            included; and the private writable memory that each may map. Under 2 GiB torch and both
            languages may not load; torch with a CUDA context maps 1.6 GiB before it does any work.
        n_processes: processes and threads together.
        cpu_sec: processor seconds of each process, None for no limit.
        file_bytes: the size of any one file.
        tmp_bytes: the size of /tmp, and again of /dev/shm; neither exists at NONE.
        n_files: open descriptors of each process.
    """

    memory_bytes: int
    n_processes: int = 512
    cpu_sec: int | None = None
    file_bytes: int = 4096 * _MiB
    tmp_bytes: int = 1024 * _MiB
    n_files: int = 4096

    def __post_init__(self) -> None:
        for name, limit in vars(self).items():
            if limit is not None and limit < 1:
                raise ValueError(f"limit {name}={limit} must be at least 1")

    def rlimits(self) -> dict[str, int]:
        """Return the kernel's limits under the names that prlimit(1) and RLIMIT_* share.

        None exceeds what this process may have itself. Address space stays unlimited, for torch,
        LLVM and CUDA reserve far more than they touch: 18 GiB for a CUDA context.
        """
        limits = {
            "core": 0,
            "data": self.memory_bytes,
            "fsize": self.file_bytes,
            "nofile": self.n_files,
            "nproc": self.n_processes,
        }
        if self.cpu_sec is not None:
            limits["cpu"] = self.cpu_sec
        return {name: _within_ours(name, value) for name, value in limits.items()}


@dataclass(frozen=True)
class Room:
    """One sandbox as asked for; the meaning of each field is told at `runner.sandbox.start`."""

    folder: Path
    writable: bool
    limits: Limits
    read_only: Sequence[Path] = ()
    pass_fds: Sequence[int] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    gpu: bool = False
    cores: Sequence[int] | None = None

    def __post_init__(self) -> None:
        if not self.folder.is_dir():
            raise NotADirectoryError(f"the sandbox's folder {self.folder} is not a directory")
        for path in self.read_only:
            if not path.is_absolute() or not path.exists():
                raise ValueError(f"read-only path {path} must be absolute and exist")
        if self.cores is not None:
            absent = set(self.cores) - os.sched_getaffinity(0)
            if absent or not self.cores:
                raise ValueError(
                    f"cores {list(self.cores)}: name at least one, of those allowed here:"
                    f" {sorted(os.sched_getaffinity(0))}"
                )

    def variables(self, *, tmp: str = TMP_INSIDE) -> dict[str, str]:
        """Return the whole environment inside: a fixed minimum, then what the caller adds."""
        folders = [Path(sys.executable).parent, SYSTEM_PATH]
        if self.gpu and _CUDA_HOME.exists():
            folders.insert(1, _CUDA_HOME / "bin")
        minimum = {
            "HOME": tmp,
            "LANG": "C.UTF-8",
            "LOGNAME": "sandbox",
            "PATH": ":".join(map(str, folders)),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONNOUSERSITE": "1",
            "TMPDIR": tmp,
            "USER": "sandbox",
            "XDG_CACHE_HOME": f"{tmp}/cache",
        }
        return minimum | (_gpu_variables() if self.gpu else {}) | dict(self.environment)


def _within_ours(name: str, value: int) -> int:
    _, ceiling = resource.getrlimit(getattr(resource, f"RLIMIT_{name.upper()}"))
    return value if ceiling == resource.RLIM_INFINITY else min(value, ceiling)


def _gpu_variables() -> dict[str, str]:
    passed = {name: os.environ[name] for name in _GPU_VARIABLES if name in os.environ}
    toolkit = {"CUDA_PATH": str(_CUDA_HOME)} if _CUDA_HOME.exists() else {}
    return passed | toolkit | {"CUDA_CACHE_DISABLE": "1"}
