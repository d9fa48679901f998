"""What a kernel's text alone tells: refused, forbidden, without its DSL, or worth a remark."""

import ast
import stat
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from runner.grader.uses import DYNAMIC, Use, aliases_of, uses_of
from runner.protocol import KERNEL_LIMIT_BYTES, Dsl, Outcome

# Packages that are another kernel language, compiler or kernel library, in any variant.
FORBIDDEN = frozenset(
    {
        "aiter", "apex", "cffi", "cupy", "cuda_tile", "cython", "deep_gemm", "flash_attn",
        "flash_attn_interface", "flash_mla", "flashinfer", "helion", "jax", "jaxlib",
        "liger_kernel", "mlx", "numba", "nvmath", "pycuda", "pyopencl", "quack", "sgl_kernel",
        "taichi", "tensorflow", "tensorrt", "tilelang", "torchao", "transformer_engine", "triton",
        "triton_kernels", "thunderkittens", "vllm", "warp", "xformers",
        "torch._dynamo", "torch._inductor", "torch.jit", "torch.utils.cpp_extension",
        "tvm_ffi.cpp",
    }
)  # fmt: skip
FORBIDDEN_CALLS = frozenset({"torch.compile", "torch.jit.script", "torch.jit.trace"})
DSL_PACKAGE = {Dsl.CUTEDSL: "cutlass", Dsl.TIRX: "tvm"}

# Names whose use is remarked, each with what a reader should look for.
_REMARKS = {
    "ctypes": "loads or calls native code",
    "torch.cuda.CUDAGraph": "may replay a CUDA graph",
    "torch.cuda.graph": "may replay a CUDA graph",
    "torch.cuda.make_graphed_callables": "may replay a CUDA graph",
    "torch.cuda.Stream": "works on streams of its own",
    "threading": "starts threads",
    "_thread": "starts threads",
    "concurrent": "starts threads or processes",
    "multiprocessing": "starts processes",
    "subprocess": "starts processes",
    "os.fork": "starts processes",
    "os.system": "starts processes",
    "socket": "opens sockets",
    "gc.get_objects": "walks the heap",
    "gc.get_referrers": "walks the heap",
    "sys._getframe": "reads its callers' frames",
    "inspect.stack": "reads its callers' frames",
    "inspect.currentframe": "reads its callers' frames",
    "sys.modules": "reaches into loaded modules",
    "os.sched_setaffinity": "moves itself to other cores",
    "torch.set_num_threads": "changes the number of threads",
    "pickle": "loads or stores objects",
    "runner": "names the grader",
    "problems": "names the problems",
}


@dataclass(frozen=True)
class Reading:
    """What was read; with an outcome, the text alone decides and the kernel is never run.

    Findings are remarks, shown and not punished. Suspects are forbidden packages named only where
    the line may not run: when one of them was loaded after all, the rule was broken.
    """

    outcome: Outcome | None = None
    message: str = ""
    findings: tuple[str, ...] = ()
    suspects: tuple[str, ...] = ()


def read_file(path: Path) -> tuple[str, Reading]:
    """Return a kernel file's text and, where the file itself is refused, the reading.

    Raises:
        FileNotFoundError: there is no such file.
    """
    if not stat.S_ISREG(path.lstat().st_mode):
        return "", _refused(f"{path.name} is not a regular file; send the kernel as one")
    with path.open("rb") as file:
        content = file.read(KERNEL_LIMIT_BYTES + 1)
    if len(content) > KERNEL_LIMIT_BYTES:
        return "", _too_large()
    try:
        return content.decode(), Reading()
    except UnicodeDecodeError as error:
        return "", _refused(f"kernel.py is not UTF-8 at byte {error.start}; save it as UTF-8")


def read(kernel: str, dsl: Dsl) -> Reading:
    """Read a kernel's text without running it."""
    tree = _parsed(kernel)
    if isinstance(tree, Reading):
        return tree
    uses = list(uses_of(tree))
    broken, suspects = _forbidden(uses, dsl)
    findings = tuple(dict.fromkeys(_findings(uses)))
    if broken:
        return Reading(Outcome.FORBIDDEN, broken, findings)
    if not _works_in(dsl, tree, uses):
        package = DSL_PACKAGE[dsl]
        return Reading(
            Outcome.NO_DSL_WORK,
            f"kernel.py never uses {dsl.label}: it must import {package} and call what it compiled",
            findings,
        )
    return Reading(findings=findings, suspects=suspects)


def _parsed(kernel: str) -> ast.Module | Reading:
    """Return the syntax tree, or why there is none."""
    try:
        if len(kernel.encode()) > KERNEL_LIMIT_BYTES:
            return _too_large()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(kernel)
    except UnicodeEncodeError:
        return _refused("kernel.py is not UTF-8: it holds half of a surrogate pair")
    except SyntaxError as error:
        return _refused(f"kernel.py does not parse: {error.msg} (line {error.lineno})")
    except (ValueError, RecursionError, MemoryError) as error:
        return _refused(f"kernel.py does not parse: {error or type(error).__name__}")


def _refused(message: str) -> Reading:
    return Reading(Outcome.REFUSED, message)


def _too_large() -> Reading:
    return _refused(f"kernel.py is over the limit of {KERNEL_LIMIT_BYTES} bytes; make it shorter")


def _forbidden(uses: list[Use], dsl: Dsl) -> tuple[str, tuple[str, ...]]:
    """Return the sentence on what is certainly forbidden, and the packages that may be."""
    others = {package for other, package in DSL_PACKAGE.items() if other is not dsl}
    suspects: dict[str, None] = {}
    for use in uses:
        package = _package(use.name, FORBIDDEN | others)
        if package is None and use.name not in FORBIDDEN_CALLS:
            continue
        if use.certain:
            rule = f"only {dsl.label} may be mixed with eager PyTorch and plain Python"
            return f"kernel.py uses {use.name} (line {use.line}): {rule}", ()
        # torch itself loads torch.jit, so its presence proves nothing.
        if package != "torch.jit":
            suspects[package or "torch._dynamo"] = None
    return "", tuple(suspects)


def _findings(uses: list[Use]) -> Iterator[str]:
    for use in uses:
        if name := _package(use.name, _REMARKS):
            yield f"{use.name} (line {use.line}): {_REMARKS[name]}"
        elif _package(use.name, DYNAMIC):
            yield f"{use.name} (line {use.line}): names or runs code that reading cannot follow"
        elif not use.certain and (
            use.name in FORBIDDEN_CALLS or _package(use.name, FORBIDDEN) is not None
        ):
            yield f"{use.name} (line {use.line}): forbidden, where this line runs"


def _works_in(dsl: Dsl, tree: ast.Module, uses: list[Use]) -> bool:
    """Whether the text may do its work in the DSL: False only when it certainly does not."""
    if any(_package(use.name, DYNAMIC) for use in uses):
        return True
    package = DSL_PACKAGE[dsl]
    aliases = aliases_of(tree)
    own = {local for local, name in aliases.items() if _package(name, (package,))}
    return any(isinstance(node, ast.Name) and node.id in own for node in ast.walk(tree))


def _package(name: str, packages: object) -> str | None:
    """Return which of the packages a dotted name lies in, the longest match first."""
    parts = name.split(".")
    for n_parts in range(len(parts), 0, -1):
        if (prefix := ".".join(parts[:n_parts])) in packages:  # type: ignore[operator]
            return prefix
    return None
