"""The untrusted side: loads the kernel, calls it, hands back bytes; knows no seed, decides nothing.

It stands in the sandbox with this file and its neighbours wire, blocks, clock and forms copied
beside the kernel, and nothing else of the project. Whatever it says is a claim.
"""

import importlib
import importlib.metadata
import importlib.util
import os
import socket
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from runner.grader import blocks, clock, forms, wire

_DSL_MODULES = {"cutedsl": ("cutlass", "cutlass.cute"), "tirx": ("tvm", "tvm.script.tirx")}
_PACKAGES = ("torch", "nvidia-cutlass-dsl", "apache-tvm", "apache-tvm-ffi")
_TRACE_LIMIT_CHARS = 6_000
_FRAME_LIMIT = 200


def main(fd: int, dsl: str, device: str) -> None:
    """Serve the parent on the socket `fd`, with kernel.py in the working folder, until it ends."""
    channel = wire.Channel(socket.socket(fileno=fd))
    if device == "cpu":
        torch.set_num_threads(1)
    for name in _DSL_MODULES[dsl]:
        importlib.import_module(name)
    if device == "cuda":
        torch.zeros(1, device="cuda")
    child = Child(channel, device)
    channel.send({"kind": "ready", "call": 0, "versions": _versions()})
    with suppress(wire.ClosedError):
        while True:
            child.serve()
    # A kernel's threads or exit handlers must not keep the process alive.
    os._exit(0)


class Child:
    """Answers the parent's requests: load, hold (inputs), go (call solve once)."""

    def __init__(self, channel: wire.Channel, device: str) -> None:
        self._channel = channel
        self._device = device
        # Until a kernel is loaded, a call only allocates outputs: the parent's calibration.
        self._solve: Callable[..., Any] = self._null_solve
        self._inputs: list[Any] = []
        self._outputs: list[torch.Tensor] = []
        self._blocks: list[blocks.Block] = []
        self._watched: list[str] = []

    def serve(self) -> None:
        """Answer one request.

        Raises:
            wire.ClosedError: the parent is gone.
        """
        request, fds = self._channel.receive(n_fds=wire.FD_LIMIT)
        try:
            answer = getattr(self, f"_{request['kind']}")(request, fds)
        # The boundary: whatever the kernel raises, SystemExit included, becomes a message.
        except BaseException as error:
            answer = {"kind": "failed", "error": _describe_error(error)}
        self._channel.send({**answer, "call": request["call"]})

    def _load(self, request: wire.Message, _fds: list[int]) -> wire.Message:
        self._watched = [name for name in request["watch"] if name not in sys.modules]
        self._solve = _load_kernel(Path.cwd() / "kernel.py").solve
        if not callable(self._solve):
            raise TypeError(f"kernel.py's solve is a {type(self._solve).__name__}, not a function")
        return {"kind": "loaded", "seen": self._seen()}

    def _hold(self, request: wire.Message, fds: list[int]) -> wire.Message:
        """Map inputs and output blocks.

        On the CPU the call before last is let go only now, so that a tensor's address differs
        from the one of the call before. A GPU may not have room for both.
        """
        before, self._blocks = self._blocks, []
        self._inputs, self._outputs = [], []
        if self._device == "cuda":
            _close(before)
        fd = iter(fds)
        self._inputs = [self._value(spec, fd) for spec in request["inputs"]]
        self._outputs = [self._value(spec, fd) for spec in request["outputs"]]
        if self._device == "cpu":
            _close(before)
        return {"kind": "held"}

    def _release(self, _request: wire.Message, _fds: list[int]) -> wire.Message:
        """Let go of the memory before the parent frees it, as CUDA IPC demands."""
        before, self._blocks = self._blocks, []
        self._inputs, self._outputs = [], []
        _close(before)
        return {"kind": "held"}

    def _go(self, _request: wire.Message, _fds: list[int]) -> wire.Message:
        result, elapsed_ns = clock.timed_call(self._solve, self._inputs, device=self._device)
        form, leaves = forms.describe(result, self._inputs)
        written = _write(leaves, self._outputs)
        if self._device == "cuda":
            torch.cuda.synchronize()
        return {
            "kind": "returned",
            "elapsed_ns": elapsed_ns,
            "form": form,
            "written": written,
            "seen": self._seen(),
        }

    def _value(self, spec: wire.Message, fds: Any) -> Any:
        if spec["kind"] == "scalar":
            return spec["value"]
        dtype = getattr(torch, spec["dtype"])
        n_elements = 1
        for size in spec["shape"]:
            n_elements *= size
        fd = next(fds) if self._device == "cpu" else None
        n_bytes = n_elements * dtype.itemsize
        block = blocks.attach(n_bytes, device=self._device, ticket=spec["ticket"], fd=fd)
        self._blocks.append(block)
        return blocks.as_tensor(block, dtype=dtype, shape=spec["shape"])

    def _null_solve(self, *_inputs: Any) -> tuple[torch.Tensor, ...]:
        return tuple(torch.zeros_like(output) for output in self._outputs)

    def _seen(self) -> list[str]:
        return [name for name in self._watched if name in sys.modules]


def _close(held: list[blocks.Block]) -> None:
    for block in held:
        block.close()


def _load_kernel(path: Path) -> ModuleType:
    """Import kernel.py from its file: both DSLs read a kernel's source through inspect."""
    spec = importlib.util.spec_from_file_location("kernel", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path.name} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    sys.modules["kernel"] = module
    spec.loader.exec_module(module)
    if not hasattr(module, "solve"):
        raise ImportError("kernel.py defines no solve(*inputs)")
    return module


@torch.no_grad()
def _write(leaves: Sequence[torch.Tensor], outputs: Sequence[torch.Tensor]) -> bool:
    """Copy the result into the parent's blocks, if it is what they were made for."""
    fits = len(leaves) == len(outputs) and all(
        (leaf.shape, leaf.dtype, leaf.device.type)
        == (output.shape, output.dtype, output.device.type)
        for leaf, output in zip(leaves, outputs, strict=True)
    )
    if fits:
        # A tensor subclass could answer for the copy; the plain one moves what is there.
        with torch._C.DisableTorchFunctionSubclass():
            for leaf, output in zip(leaves, outputs, strict=True):
                output.copy_(leaf)
    return fits


def _describe_error(error: BaseException) -> wire.Message:
    """Tell an exception in JSON: its type and bases, its text, and where it came from."""
    frames = [
        str(frame.f_globals.get("__name__", ""))
        for frame, _ in traceback.walk_tb(error.__traceback__)
    ]
    kinds = [f"{kind.__module__}.{kind.__qualname__}" for kind in type(error).__mro__]
    try:
        text = str(error)
        trace = "".join(traceback.format_exception(error, limit=-8))
    # The kernel's own exception class may break even this.
    except Exception:
        text = trace = "(its text cannot be read)"
    return {
        "kinds": [kind[:200] for kind in kinds[:12]],
        "text": text[:_TRACE_LIMIT_CHARS],
        "trace": trace[-_TRACE_LIMIT_CHARS:],
        "frames": [name[:100] for name in frames[-_FRAME_LIMIT:]],
    }


def _versions() -> dict[str, str]:
    versions = {"python": sys.version.partition(" ")[0]}
    for name in _PACKAGES:
        with suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return versions
