"""The host's paths that a sandbox shows: the system, the interpreter, the GPU, the caller's own."""

import sys
from dataclasses import dataclass
from pathlib import Path

from runner.sandbox.room import FOLDER_INSIDE, Room

_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_ETC = ("/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d")
# What the sandbox makes itself: nothing of the host may be laid over it.
_OWN = ("/proc", "/dev", FOLDER_INSIDE)


@dataclass(frozen=True)
class Bind:
    """One host path shown inside at `target`."""

    source: str
    target: str
    writable: bool = False
    is_device: bool = False


@dataclass(frozen=True)
class View:
    """All that shows inside beside /proc, /dev, /tmp and /dev/shm, in the order of mounting."""

    links: tuple[tuple[str, str], ...]
    binds: tuple[Bind, ...]


def view(room: Room) -> View:
    """Return what `room` shows, `room.folder` last and at FOLDER_INSIDE."""
    links = tuple((str(Path(name).readlink()), name) for name in _SYSTEM if Path(name).is_symlink())
    plain = [path for name in (*_SYSTEM, *_ETC) if (path := Path(name)).exists()]
    shown = [path for path in plain if not path.is_symlink()] + interpreter_paths()
    shown += [*room.read_only]
    if room.gpu and Path("/sys").exists():
        shown.append(Path("/sys"))
    binds = [Bind(str(path.resolve()), str(path)) for path in shown]
    for bind in binds:
        if any(_covers(Path(bind.target), Path(own)) for own in _OWN):
            raise ValueError(f"{bind.target} cannot be shown: it would hide the sandbox's own path")
        if Path(FOLDER_INSIDE) in Path(bind.target).parents:
            raise ValueError(f"{bind.target} cannot be shown inside the sandbox's folder")
    if room.gpu:
        binds += [Bind(str(node), str(node), is_device=True) for node in gpu_nodes()]
    binds.append(Bind(str(room.folder.resolve()), FOLDER_INSIDE, writable=room.writable))
    return View(links=links, binds=tuple(binds))


def interpreter_paths() -> list[Path]:
    """Return the folders that hold this interpreter and its packages, outside the system's own.

    A virtual environment names its base by links, each of which must lead somewhere inside too.
    """
    paths = {Path(prefix) for prefix in (sys.prefix, sys.exec_prefix)}
    paths |= {Path(prefix) for prefix in (sys.base_prefix, sys.base_exec_prefix)}
    hop = Path(sys.executable)
    while hop.is_symlink():
        hop = hop.parent / hop.readlink()
        paths.add(hop.parent.parent)
    paths |= {path.resolve() for path in paths}
    # Shortest first, so that a folder never hides another that was laid inside it.
    return sorted(
        (path for path in paths if not any(_covers(Path(name), path) for name in _SYSTEM)),
        key=lambda path: len(path.parts),
    )


def gpu_nodes() -> list[Path]:
    """Return the NVIDIA device nodes of this host; none without a GPU."""
    return [node for node in sorted(Path("/dev").glob("nvidia*")) if node.is_char_device()] + [
        node for node in sorted(Path("/dev/nvidia-caps").glob("*")) if node.is_char_device()
    ]


def _covers(outer: Path, inner: Path) -> bool:
    return outer == inner or outer in inner.parents or inner == Path("/")
