"""Inside fresh namespaces: build a small root, take every right away, run one command.

Run by path as `python -I -S shim.py ORDER_FD` under unshare(1), with the standard library alone:
the project's packages are not to be seen from here. ORDER_FD gives the JSON of `namespaces.order`.
"""

import ctypes
import errno
import json
import os
import platform
import resource
import signal
import struct
import sys
from pathlib import Path
from typing import Any, NoReturn

_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.syscall.restype = ctypes.c_long
_LIBC.prctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_long, ctypes.c_long]
_LIBC.mount.argtypes = [*[ctypes.c_char_p] * 3, ctypes.c_ulong, ctypes.c_char_p]
_X86 = platform.machine() == "x86_64"

_PIVOT_ROOT = 155 if _X86 else 41
_MOUNT_SETATTR = 442
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446
_LANDLOCK_ASK_VERSION = 1

_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_BIND, _MS_REC = 0x2, 0x4, 0x8, 0x1000, 0x4000
_MNT_DETACH = 2
_ATTR_READ_ONLY, _ATTR_NOSUID, _ATTR_NODEV = 0x1, 0x2, 0x4
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_CAPBSET_DROP = 1, 4, 22, 24
_PR_SET_SECUREBITS, _PR_SET_NO_NEW_PRIVS = 28, 38
_SECCOMP_MODE_FILTER = 2
_ROOT_IS_NOBODY_LOCKED = 0b11
_CAPABILITY_VERSION_3 = 0x2008_0522

# The rights of Landlock's first interface; each later one adds the next.
_FILE_EXECUTE, _FILE_WRITE, _FILE_READ, _DIRECTORY_READ = 0x1, 0x2, 0x4, 0x8
_RIGHTS_OF_FIRST_INTERFACE = (1 << 13) - 1
_REFER, _TRUNCATE, _IOCTL_DEVICE = 1 << 13, 1 << 14, 1 << 15

_EVERY_DESCRIPTOR = 2**31 - 1

_STAGE = "/tmp"  # noqa: S108  (covered by our own tmpfs)
_OLD = f"{_STAGE}/old"
_NODES = ("null", "zero", "full", "random", "urandom")
_STREAMS = (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2"))


def main(order_fd: int) -> NoReturn:
    """Obey the order, and end as the command ends: 128 + the signal if one killed it."""
    with os.fdopen(order_fd, "rb") as stream:
        order: dict[str, Any] = json.load(stream)
    program = _read_all(order["seccomp_fd"])
    # Of a new process-id namespace the first child is the first process.
    if first := os.fork():
        reap_until(first)
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    Path("/proc/self/oom_score_adj").write_text("1000")
    build_root(order)
    give_up_user(order["uid"])
    for name, value in order["rlimits"].items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name.upper()}"), (value, value))
    if order["cores"] is not None:
        os.sched_setaffinity(0, order["cores"])
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    restrict_files([order["folder"]] if order["folder_writable"] else [], tmp=order["tmp"])
    filter_calls(program)
    child = os.fork()
    if child == 0:
        os.setsid()
        # Python ignores these two, and what it ignores stays ignored in what it executes.
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.chdir(order["folder"])
        _execute(order["argv"], order["environment"])
    reap_until(child)


def build_root(order: dict[str, Any]) -> None:
    """Make a root that holds what the order shows and nothing else, and move into it."""
    _mount("tmpfs", _STAGE, kind="tmpfs", flags=_MS_NOSUID | _MS_NODEV, options="mode=0755")
    os.mkdir(_OLD)
    os.mkdir(f"{_STAGE}/new")
    _syscall(_PIVOT_ROOT, _STAGE.encode(), _OLD.encode())
    os.chdir("/")
    _mount("/new", "/new", flags=_MS_BIND)
    _lay_own_mounts(order)
    for target, link in order["links"]:
        os.symlink(target, f"/new{link}")
    for bind in order["binds"]:
        _lay(bind)
    for place in ("/new/dev", "/new"):
        _set_attributes(place, _ATTR_READ_ONLY, recursive=False)
    os.chdir("/new")
    _syscall(_PIVOT_ROOT, b".", b".")
    if _LIBC.umount2(b".", _MNT_DETACH):
        raise _failure("leaving the host's root")
    os.chdir("/")


def give_up_user(uid: int | None) -> None:
    """Become `uid`, or stay the ordinary user who is root here by name; both without a right."""
    _prctl(_PR_SET_SECUREBITS, _ROOT_IS_NOBODY_LOCKED)
    number = 0
    while _LIBC.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0) == 0:
        number += 1
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    header, nothing = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0), bytes(24)
    if _LIBC.capset(header, nothing):
        raise _failure("dropping capabilities")
    # The kernel forgets the wish to die with the parent when the user changes.
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    _prctl(_PR_SET_DUMPABLE, 0)


def restrict_files(writable: list[str], *, tmp: str) -> None:
    """Let Landlock refuse writes elsewhere, TCP, and signals and abstract sockets to the outside.

    Nothing happens on a kernel without Landlock: the mounts say the same of files, the empty
    network namespace of sockets. This is the second wall, not the first.
    """
    try:
        interface = _syscall(_LANDLOCK_CREATE, 0, 0, _LANDLOCK_ASK_VERSION)
    except OSError:
        return
    handled = _RIGHTS_OF_FIRST_INTERFACE
    handled |= _REFER if interface >= 2 else 0
    handled |= _TRUNCATE if interface >= 3 else 0
    handled |= _IOCTL_DEVICE if interface >= 5 else 0
    attributes = struct.pack("=Q", handled)
    attributes += struct.pack("=Q", 0b11) if interface >= 4 else b""
    attributes += struct.pack("=Q", 0b11) if interface >= 6 else b""
    ruleset = _syscall(_LANDLOCK_CREATE, attributes, len(attributes), 0)
    reading = _FILE_EXECUTE | _FILE_READ | _DIRECTORY_READ
    in_place = reading | ((_FILE_WRITE | _TRUNCATE | _IOCTL_DEVICE) & handled)
    rules = {"/": reading, "/dev": in_place, "/proc": in_place, "/dev/shm": handled, tmp: handled}  # noqa: S108
    for path, rights in (rules | dict.fromkeys(writable, handled)).items():
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        _syscall(_LANDLOCK_ADD, ruleset, 1, struct.pack("=Qi", rights, place), 0)
        os.close(place)
    _syscall(_LANDLOCK_RESTRICT, ruleset, 0)
    os.close(ruleset)


def filter_calls(program: bytes) -> None:
    """Install the seccomp filter for this process and all it starts."""
    code = ctypes.create_string_buffer(program, len(program))
    fprog = struct.pack("@HP", len(program) // 8, ctypes.addressof(code))
    _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, fprog)


def reap_until(child: int) -> NoReturn:
    """Let go of all descriptors, collect orphans, and end as `child` does; the rest dies then."""
    os.closerange(0, _EVERY_DESCRIPTOR)
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


def _lay_own_mounts(order: dict[str, Any]) -> None:
    for name in ("proc", "dev", "tmp"):
        os.mkdir(f"/new/{name}")
    hardened = _MS_NOSUID | _MS_NODEV
    _mount("proc", "/new/proc", kind="proc", flags=hardened | _MS_NOEXEC)
    _mount("tmpfs", "/new/dev", kind="tmpfs", flags=_MS_NOSUID, options="mode=0755")
    os.mkdir("/new/dev/shm")
    for place in (f"/new{order['tmp']}", "/new/dev/shm"):
        options = f"mode=1777,size={order['tmp_bytes']}"
        _mount("tmpfs", place, kind="tmpfs", flags=hardened, options=options)
    for node in _NODES:
        Path(f"/new/dev/{node}").touch()
        _mount(f"/old/dev/{node}", f"/new/dev/{node}", flags=_MS_BIND)
    for name, tail in _STREAMS:
        os.symlink(f"/proc/self/fd{tail}", f"/new/dev/{name}")


def _lay(bind: dict[str, Any]) -> None:
    source, target = Path("/old" + bind["source"]), Path("/new" + bind["target"])
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        target.mkdir(exist_ok=True)
    elif not target.exists():
        target.touch()
    _mount(str(source), str(target), flags=_MS_BIND | _MS_REC)
    attributes = _ATTR_NOSUID | (0 if bind["is_device"] else _ATTR_NODEV)
    if not (bind["writable"] or bind["is_device"]):
        attributes |= _ATTR_READ_ONLY
    _set_attributes(str(target), attributes, recursive=True)


def _mount(
    source: str, target: str, *, kind: str | None = None, flags: int, options: str | None = None
) -> None:
    words = [word.encode() if word is not None else None for word in (source, target, kind)]
    if _LIBC.mount(*words, flags, options.encode() if options else None):
        raise _failure(f"mounting {source} on {target}")


def _set_attributes(path: str, attributes: int, *, recursive: bool) -> None:
    wanted = struct.pack("=QQQQ", attributes, 0, 0, 0)
    flags = _AT_RECURSIVE if recursive else 0
    _syscall(_MOUNT_SETATTR, _AT_FDCWD, path.encode(), flags, wanted, len(wanted))


def _execute(argv: list[str], environment: dict[str, str]) -> NoReturn:
    try:
        os.execvpe(argv[0], argv, environment)  # noqa: S606
    except OSError as error:
        sys.stderr.write(f"{argv[0]}: {error.strerror}\n")
        sys.stderr.flush()
        os._exit(126 if error.errno == errno.EACCES else 127)


def _read_all(fd: int) -> bytes:
    with os.fdopen(fd, "rb") as stream:
        return stream.read()


def _prctl(option: int, value: int, more: bytes | int = 0) -> None:
    if _LIBC.prctl(option, value, more, 0, 0):
        raise _failure(f"prctl {option}")


def _syscall(number: int, *arguments: bytes | int) -> int:
    wide = [ctypes.c_long(word) if isinstance(word, int) else word for word in arguments]
    result = int(_LIBC.syscall(ctypes.c_long(number), *wide))
    if result < 0:
        raise _failure(f"system call {number}")
    return result


def _failure(what: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, f"{what}: {os.strerror(number)}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
