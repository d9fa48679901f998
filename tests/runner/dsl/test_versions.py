"""Versions are read from metadata, never by importing."""

import subprocess
import sys
from importlib.metadata import version

from runner.dsl.versions import Versions, installed, version_of
from runner.protocol import Dsl


def test_every_package_of_the_runner_has_a_version() -> None:
    found = installed()
    assert found.torch == version("torch")
    assert found.of(Dsl.CUTEDSL) == version("nvidia-cutlass-dsl")
    assert found.of(Dsl.TIRX) == version("apache-tvm")
    assert found.tvm_ffi == version("apache-tvm-ffi")


def test_an_absent_package_has_none() -> None:
    assert version_of("surely-not-installed-anywhere") is None
    assert Versions(torch=None, cutedsl=None, tirx="1", tvm_ffi=None).of(Dsl.CUTEDSL) is None


def test_asking_imports_none_of_them() -> None:
    program = (
        "import sys; from runner.dsl.versions import installed; installed();"
        "sys.exit(any(name in sys.modules for name in ('torch', 'cutlass', 'tvm')))"
    )
    finished = subprocess.run([sys.executable, "-c", program], check=False, timeout=60)
    assert finished.returncode == 0
