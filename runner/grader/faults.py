"""What went wrong and whose fault it was: exceptions, exits and signals turned into outcomes."""

import signal
from collections.abc import Mapping, Sequence
from typing import Any

from runner.messages import Mismatch
from runner.protocol import Outcome

_SIGNAL_BASE = 128

# Where a DSL compiles and where it runs: the innermost of these on a traceback decides. An
# exception's type alone does not: CuTe raises a bare TypeError out of its tracer.
_COMPILERS = (
    "cutlass.base_dsl",
    "tvm.driver",
    "tvm.script",
    "tvm.tirx",
    "tvm.target",
    "tvm.support",
)
_RUNTIMES = ("cutlass.base_dsl.jit_executor", "cutlass.base_dsl.runtime", "tvm.runtime")
_RUNTIME_KINDS = ("CudaRuntimeError",)
_OUT_OF_MEMORY_KINDS = (
    "builtins.MemoryError",
    "torch.OutOfMemoryError",
    "torch.cuda.OutOfMemoryError",
)
_OUT_OF_MEMORY_TEXTS = ("can't allocate memory", "out of memory", "std::bad_alloc")


class KernelError(Exception):
    """The kernel did not pass; the outcome is never `infrastructure`."""

    def __init__(self, outcome: Outcome, message: str, mismatch: Mismatch | None = None) -> None:
        super().__init__(message)
        self.outcome = outcome
        self.mismatch = mismatch


class HostError(Exception):
    """Something of ours failed, so nothing can be said of the kernel."""


def of_exception(error: Mapping[str, Any], *, loading: bool) -> KernelError:
    """Return the fault that an exception in the child stands for.

    Args:
        error: as the child tells it: kinds (the type and its bases), text, trace, frames.
        loading: whether kernel.py was being imported; otherwise `solve` was being called.
    """
    kinds = _texts(error.get("kinds"))
    frames = _texts(error.get("frames"))
    text = str(error.get("text", "")).strip()
    trace = str(error.get("trace", ""))
    name = kinds[0].removeprefix("builtins.") if kinds else "an exception"
    message = f"{name}: {_first_lines(text)}" if text else name
    if any(kind in _OUT_OF_MEMORY_KINDS for kind in kinds) or any(
        sign in text for sign in _OUT_OF_MEMORY_TEXTS
    ):
        return KernelError(Outcome.OOM, f"out of memory: {message}")
    if _compiling(kinds, frames):
        return KernelError(Outcome.COMPILE_ERROR, f"the DSL refused to compile: {message}")
    where = _where(trace)
    if loading:
        return KernelError(Outcome.IMPORT_ERROR, f"importing kernel.py raised {message}{where}")
    return KernelError(Outcome.RUNTIME_ERROR, f"solve raised {message}{where}")


def of_death(returncode: int | None, *, over_memory: bool, doing: str) -> KernelError:
    """Return the fault of a child that ended without an answer.

    Args:
        returncode: the sandbox's: a signal shows as its negative or as 128 more; None if unknown.
        over_memory: whether the sandbox was stopped for using too much memory.
        doing: what it was asked to do, as "while …" goes on.
    """
    if over_memory:
        return KernelError(Outcome.OOM, f"the process used more memory than it may while {doing}")
    number = _signal_of(returncode)
    if number == signal.SIGKILL:
        return KernelError(
            Outcome.OOM,
            f"the process was killed (SIGKILL) while {doing}, as one is that runs out of memory",
        )
    if number is not None:
        return KernelError(Outcome.CRASH, f"the process died of {number.name} while {doing}")
    status = "an unknown status" if returncode is None else f"status {returncode}"
    return KernelError(
        Outcome.CRASH, f"the process exited with {status}, without an answer, while {doing}"
    )


def _signal_of(returncode: int | None) -> signal.Signals | None:
    if returncode is None:
        return None
    number = -returncode if returncode < 0 else returncode - _SIGNAL_BASE
    try:
        return signal.Signals(number)
    except ValueError:
        return None


def _compiling(kinds: Sequence[str], frames: Sequence[str]) -> bool:
    if kinds and kinds[0].endswith(_RUNTIME_KINDS):
        return False
    for name in reversed(frames):
        if _within(name, _RUNTIMES):
            return False
        if _within(name, _COMPILERS):
            return True
    return False


def _within(name: str, packages: Sequence[str]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def _texts(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _first_lines(text: str, *, limit_chars: int = 1_500) -> str:
    return text if len(text) <= limit_chars else f"{text[:limit_chars]} …"


def _where(trace: str) -> str:
    """Return the place in kernel.py that the traceback names last, as " (kernel.py, line 7)"."""
    lines = [line.strip() for line in trace.splitlines() if 'kernel.py", line ' in line]
    if not lines:
        return ""
    number = lines[-1].partition('kernel.py", line ')[2].partition(",")[0]
    return f" (kernel.py, line {number})" if number.isdigit() else ""
