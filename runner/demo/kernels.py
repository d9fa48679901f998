"""The shelf of kernels that the scripted model can write: one file a problem, DSL and strategy."""

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from runner.protocol import Dsl

_PACKAGED = Path(__file__).parent / "kernels"


@dataclass(frozen=True)
class Kernel:
    """A kernel file's text. `strategy` comes from its name, `summary` from its docstring."""

    strategy: str
    text: str
    summary: str


@dataclass(frozen=True)
class Shelf:
    """A folder of kernels, laid out `pNN/<dsl>_<strategy>.py`."""

    folder: Path = _PACKAGED

    def kernels(self, number: int, dsl: Dsl) -> Mapping[str, Kernel]:
        """Return what there is for a problem in a DSL, by strategy; empty when there is nothing."""
        files = sorted((self.folder / f"p{number:02d}").glob(f"{dsl}_*.py"))
        kernels = [_read(path, path.stem.removeprefix(f"{dsl}_")) for path in files]
        return {kernel.strategy: kernel for kernel in kernels}


def _read(path: Path, strategy: str) -> Kernel:
    text = path.read_text(encoding="utf-8")
    docstring = ast.get_docstring(ast.parse(text)) or strategy
    return Kernel(strategy, text, docstring.splitlines()[0])
