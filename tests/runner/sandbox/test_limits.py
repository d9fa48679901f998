"""Bombs of every kind go off inside their limits."""

import os
from collections.abc import Callable
from typing import Any

import pytest

from runner.sandbox import Finished, Level, Limits
from tests.runner.sandbox.conftest import ALL, ISOLATING

MIB = 1 << 20

FORK_TILL_REFUSED = """
import json, os, time
children = []
try:
    while len(children) < 200:
        pid = os.fork()
        if pid == 0:
            time.sleep(60)
            os._exit(0)
        children.append(pid)
except OSError:
    pass
print(json.dumps(len(children)))
"""
CHILDREN_HOLD_MEMORY = """
import os, time
held = []
for _ in range(6):
    if os.fork() == 0:
        held = bytearray(100 << 20)
        time.sleep(60)
time.sleep(60)
"""
FILES_HOLD_MEMORY = """
import os, time
for _ in range(8):
    os.write(os.memfd_create("x"), bytes(64 << 20))
time.sleep(60)
"""


@pytest.mark.parametrize("level", ALL, indirect=True)
def test_one_process_cannot_have_more_memory_than_the_limit(
    inside: Callable[..., Finished],
) -> None:
    finished = inside("bytearray(1 << 30)", limits=Limits(memory_bytes=256 * MIB))
    assert finished.returncode == 1
    assert b"MemoryError" in finished.stderr


@pytest.mark.parametrize("level", ALL, indirect=True)
def test_processes_cannot_have_more_memory_together(inside: Callable[..., Finished]) -> None:
    # Each 100 MiB is allowed by itself; six of them are 600 MiB against 256.
    finished = inside(CHILDREN_HOLD_MEMORY, limits=Limits(memory_bytes=256 * MIB))
    assert finished.over_memory
    assert not finished.timed_out


@pytest.mark.parametrize("level", ALL, indirect=True)
def test_memory_files_count_though_nobody_maps_them(inside: Callable[..., Finished]) -> None:
    # 8 x 64 = 512 MiB against 256.
    finished = inside(FILES_HOLD_MEMORY, limits=Limits(memory_bytes=256 * MIB))
    assert finished.over_memory


@pytest.mark.parametrize("level", ALL, indirect=True)
def test_no_more_processes_than_the_limit(level: Level, answer: Callable[..., Any]) -> None:
    n_forked = answer(FORK_TILL_REFUSED, limits=Limits(memory_bytes=256 * MIB, n_processes=10))
    # The command is one of the ten, and at most two more keep the sandbox.
    assert n_forked <= 9
    # Without a user or namespace of its own, all else that its user runs counts too.
    assert n_forked >= 7 or (level is Level.NONE and os.geteuid() != 0)


@pytest.mark.parametrize("level", ALL, indirect=True)
def test_no_file_grows_past_the_limit(answer: Callable[..., Any]) -> None:
    code = """
import errno, json, os
with open("f", "wb", buffering=0) as stream:
    try:
        while True:
            stream.write(bytes(1 << 18))
    except OSError as error:
        print(json.dumps([errno.errorcode[error.errno], os.stat("f").st_size]))
"""
    limits = Limits(memory_bytes=256 * MIB, file_bytes=MIB)
    assert answer(code, limits=limits) == ["EFBIG", MIB]


@pytest.mark.parametrize("level", ALL, indirect=True)
def test_processor_time_runs_out(inside: Callable[..., Finished]) -> None:
    finished = inside("while True: pass", limits=Limits(memory_bytes=256 * MIB, cpu_sec=1))
    # The soft and the hard limit are one: the kernel sends SIGKILL, 128 + 9.
    assert finished.returncode == 137


@pytest.mark.parametrize("level", ALL, indirect=True)
def test_a_command_runs_on_its_cores_alone(answer: Callable[..., Any]) -> None:
    core = max(os.sched_getaffinity(0))
    code = "import json, os; print(json.dumps(sorted(os.sched_getaffinity(0))))"
    assert answer(code, cores=[core]) == [core]


@pytest.mark.parametrize("level", [Level.NONE], indirect=True)
def test_a_core_that_the_host_lacks_is_refused(inside: Callable[..., Finished]) -> None:
    with pytest.raises(ValueError, match="cores"):
        inside("pass", cores=[4095])


@pytest.mark.parametrize("wrong", [{"memory_bytes": 0}, {"memory_bytes": 1, "n_processes": -1}])
def test_a_limit_of_nothing_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Limits(**wrong)


@pytest.mark.parametrize("level", ISOLATING, indirect=True)
def test_both_languages_and_torch_load_within_two_gigabytes(
    inside: Callable[..., Finished],
) -> None:
    code = "import torch, tvm, cutlass.cute; print(float(torch.ones(64, 64).sum()))"
    finished = inside(code, limits=Limits(memory_bytes=2048 * MIB), timeout_sec=120.0)
    assert finished.stdout == b"4096.0\n", finished.stderr.decode()
