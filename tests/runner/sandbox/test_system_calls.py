"""The system calls that are refused inside, and those that must not be."""

import struct
from collections.abc import Callable
from typing import Any

import pytest

from runner.sandbox import seccomp
from tests.runner.sandbox.conftest import ISOLATING

CALL = """
import ctypes, errno, json, os, platform, threading
libc = ctypes.CDLL(None, use_errno=True)
x86 = platform.machine() == "x86_64"
NEW_USER, SIGCHLD = 0x10000000, 17
def call(function, *arguments):
    ctypes.set_errno(0)
    function(*map(ctypes.c_long, arguments))
    return errno.errorcode.get(ctypes.get_errno(), "fine")
def number(of_x86, of_arm):
    return of_x86 if x86 else of_arm
thread = threading.Thread(target=print, args=("",), kwargs={"end": ""})
thread.start()
thread.join()
print(json.dumps({
    "ptrace": call(libc.ptrace, 0, 0, 0, 0),
    "unshare": call(libc.unshare, NEW_USER),
    "setns": call(libc.setns, 0, 0),
    "clone": call(libc.syscall, number(56, 220), NEW_USER | SIGCHLD, 0, 0, 0, 0),
    "clone3": call(libc.syscall, 435, 0, 0),
    "bpf": call(libc.syscall, number(321, 280), 0, 0, 0),
    "perf_event_open": call(libc.syscall, number(298, 241), 0, 0, 0, 0, 0),
    "io_uring_setup": call(libc.syscall, 425, 1, 0),
    "shmget": call(libc.shmget, 0, 4096, 0o1600),
    "process_vm_readv": call(libc.process_vm_readv, os.getpid(), 0, 0, 0, 0, 0),
    "getppid": call(libc.getppid),
    "memfd_create": call(libc.memfd_create, 0, 0) in ("fine", "EFAULT"),
}))
"""


@pytest.mark.parametrize("level", ISOLATING, indirect=True)
def test_dangerous_calls_are_refused_and_ordinary_ones_work(answer: Callable[..., Any]) -> None:
    seen = answer(CALL)
    refused = dict.fromkeys(seen, "EPERM")
    assert seen == refused | {"clone3": "ENOSYS", "getppid": "fine", "memfd_create": True}


@pytest.mark.parametrize("level", ISOLATING, indirect=True)
def test_calls_of_another_architecture_number_are_refused(answer: Callable[..., Any]) -> None:
    code = """
import ctypes, errno, json, platform
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall(ctypes.c_long(0x40000000 + 39))
print(json.dumps([platform.machine(), errno.errorcode.get(ctypes.get_errno(), "fine")]))
"""
    machine, seen = answer(code)
    assert seen == {"x86_64": "EPERM", "aarch64": "ENOSYS"}[machine]


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_every_jump_of_the_filter_ends_inside_it(machine: str) -> None:
    steps = list(struct.iter_unpack("=HBBI", seccomp.program(machine)))
    is_jump = 0x05
    for place, (code, if_true, if_false, _) in enumerate(steps):
        if code & 0x07 == is_jump:
            assert place + 1 + max(if_true, if_false) < len(steps)
    returns = 0x06
    assert steps[-1][0] == returns


def test_a_machine_without_a_table_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="riscv64"):
        seccomp.program("riscv64")
