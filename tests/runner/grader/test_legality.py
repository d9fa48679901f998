"""What a kernel's text alone decides."""

import os
import re
from pathlib import Path

import pytest

from runner.grader import legality
from runner.protocol import KERNEL_LIMIT_BYTES, Dsl, Outcome

HONEST = "import cutlass\nx = cutlass.Float32\ndef solve(a):\n    return a\n"


def read(text: str, dsl: Dsl = Dsl.CUTEDSL) -> legality.Reading:
    return legality.read(text, dsl)


def test_an_honest_kernel_has_no_outcome_and_no_findings() -> None:
    assert read(HONEST) == legality.Reading()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def solve(:\n", "does not parse: .* \\(line 1\\)"),
        (HONEST + "\0", "does not parse"),
        ("x = " + "(" * 5_000 + ")" * 5_000, "does not parse"),
        ("#" * (KERNEL_LIMIT_BYTES + 1), "over the limit of 300000 bytes"),
        ("# \ud800", "not UTF-8"),
        ("é" * (KERNEL_LIMIT_BYTES // 2 + 1), "over the limit"),
    ],
    ids=["syntax", "nul", "deep", "large", "surrogate", "large-in-bytes"],
)
def test_what_cannot_be_a_kernel_is_refused(text: str, words: str) -> None:
    reading = read(text)
    assert reading.outcome is Outcome.REFUSED
    assert re.search(words, reading.message)


def test_a_file_at_the_limit_is_read(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_bytes(b"#" * KERNEL_LIMIT_BYTES)
    assert legality.read_file(path) == ("#" * KERNEL_LIMIT_BYTES, legality.Reading())


def test_files_that_are_too_large_or_not_utf8_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_bytes(b"#" * (KERNEL_LIMIT_BYTES + 1))
    assert legality.read_file(path)[1].outcome is Outcome.REFUSED
    path.write_bytes(b"x = '\xff'")
    reading = legality.read_file(path)[1]
    assert reading.outcome is Outcome.REFUSED
    assert "byte 5" in reading.message


def test_what_is_no_regular_file_is_refused_and_not_opened(tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to("/etc/passwd")
    for path in (pipe, link, tmp_path):
        reading = legality.read_file(path)[1]
        assert reading.outcome is Outcome.REFUSED
        assert "not a regular file" in reading.message


@pytest.mark.parametrize(
    "line",
    [
        "import triton",
        "import triton.language as tl",
        "from triton import jit",
        "import numba.cuda",
        "import cupy as np",
        "import tvm",
        "from tvm.script import tirx",
        "import flashinfer",
        "import torch\nf = torch.compile(lambda x: x)",
        "from torch import compile as c\nf = c(lambda x: x)",
        "import torch as t\n@t.jit.script\ndef f(x):\n    return x",
        "import torch.utils.cpp_extension",
        "from torch.utils import cpp_extension",
        "import tvm_ffi.cpp",
        "try:\n    import triton\nexcept ImportError:\n    pass",
    ],
)
def test_another_language_or_compiler_is_forbidden(line: str) -> None:
    reading = read(f"{line}\n{HONEST}")
    assert reading.outcome is Outcome.FORBIDDEN
    assert "only CuTe DSL may be mixed" in reading.message


@pytest.mark.parametrize(
    "line",
    [
        "import tvm_ffi",
        "import torch, math, functools",
        "import cuda.bindings.driver",
        "triton = 1\nprint(triton.bit_length())",
        "from .triton import x",
        "import re\nre.compile('a')",
        "import cutlass.cute as cute\ncute.compile(None)",
    ],
)
def test_what_a_kernel_may_import_is_allowed(line: str) -> None:
    assert read(f"{line}\n{HONEST}") == legality.Reading()


def test_each_dsl_forbids_only_the_other() -> None:
    tirx = "from tvm.script import tirx as T\n@T.prim_func\ndef f(): ...\n"
    assert read(tirx, Dsl.TIRX).outcome is None
    assert read(HONEST, Dsl.TIRX).outcome is Outcome.FORBIDDEN


def test_a_forbidden_line_that_may_not_run_is_a_finding_and_a_suspect() -> None:
    reading = read(HONEST + "def slow():\n    import triton\n    torch = triton\n")
    assert reading.outcome is None
    assert reading.suspects == ("triton",)
    assert reading.findings[0] == "triton (line 6): forbidden, where this line runs"


def test_torch_compile_inside_a_function_suspects_its_compiler() -> None:
    reading = read(HONEST + "import torch\ndef g(x):\n    return torch.compile(solve)(x)\n")
    assert (reading.outcome, reading.suspects) == (None, ("torch._dynamo",))


@pytest.mark.parametrize("text", ["def solve(a):\n    return a\n", "import cutlass\n", ""])
def test_a_kernel_that_never_uses_its_dsl_does_no_dsl_work(text: str) -> None:
    reading = read(text)
    assert reading.outcome is Outcome.NO_DSL_WORK
    assert "must import cutlass" in reading.message


def test_where_reading_cannot_follow_it_does_not_judge() -> None:
    reading = read("dsl = __import__('cutlass')\n")
    assert reading.outcome is None
    assert "reading cannot follow" in reading.findings[0]


@pytest.mark.parametrize(
    ("line", "remark"),
    [
        ("import ctypes", "native code"),
        ("import torch\ng = torch.cuda.CUDAGraph()", "CUDA graph"),
        ("import torch.cuda as c\nwith c.graph(None): ...", "CUDA graph"),
        ("import gc\ngc.get_objects()", "heap"),
        ("import sys\nsys._getframe()", "frames"),
        ("import threading", "threads"),
        ("exec('1')", "cannot follow"),
    ],
)
def test_softer_things_are_remarked_and_not_punished(line: str, remark: str) -> None:
    reading = read(f"{HONEST}{line}\n")
    assert reading.outcome is None
    assert remark in reading.findings[0]


def test_reading_warns_nobody_about_the_kernels_own_style(
    recwarn: pytest.WarningsRecorder,
) -> None:
    read(HONEST + "assert (1, 'always true')\ny = '\\d'\n")
    assert not recwarn.list
