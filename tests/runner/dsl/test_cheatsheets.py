"""The cheat-sheets' code is real: each block is written to a file, compiled and called."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from runner.dsl import cheatsheet
from runner.protocol import Dsl

BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# Runs all three blocks of a sheet in one process: the CPU ones on numbers, the GPU one as far as
# a machine without a GPU can go.
DRIVER = {
    Dsl.CUTEDSL: "assert '.visible .entry' in added.compiled("
    "'--enable-tvm-ffi --gpu-arch sm_90a --keep-ptx').__ptx__",
    Dsl.TIRX: "assert '__global__' in added.compiled().mod.imports[0].inspect_source()",
}
COMMON = """
import torch
import block_0, block_1, block_2 as added

torch.manual_seed(0)
for rows, width in ((5, 24), (1, 24), (3, 7)):
    x = torch.randn(rows, width, dtype=torch.bfloat16)
    y = block_0.solve(x)
    assert y.dtype is torch.bfloat16
    torch.testing.assert_close(y.double(), x.double().softmax(-1), rtol=1e-2, atol=1e-3)

x, w = torch.randn(6, 16), torch.randn(16, 32)
squares, product = block_1.solve(x, w)
torch.testing.assert_close(squares.double(), x.double().square().sum(-1), rtol=1e-5, atol=1e-5)
torch.testing.assert_close(product.double(), x.double() @ w.double(), rtol=1e-4, atol=1e-5)
"""


@pytest.mark.parametrize("dsl", list(Dsl))
def test_every_code_block_compiles_and_computes_what_it_says(dsl: Dsl, tmp_path: Path) -> None:
    blocks = BLOCK.findall(cheatsheet(dsl))
    assert len(blocks) == 3
    for number, block in enumerate(blocks):
        (tmp_path / f"block_{number}.py").write_text(block)
    (tmp_path / "driver.py").write_text(COMMON + DRIVER[dsl] + "\n")
    finished = subprocess.run(
        [sys.executable, "driver.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert finished.returncode == 0, finished.stderr[-4_000:]


@pytest.mark.parametrize("dsl", list(Dsl))
def test_the_sheet_names_the_pitfalls_and_no_other_dsl(dsl: Dsl) -> None:
    text = cheatsheet(dsl)
    other = next(each for each in Dsl if each is not dsl)
    assert text.startswith(f"# {dsl.label}")
    assert "## Pitfalls" in text
    assert other.label not in text


@pytest.mark.parametrize("dsl", list(Dsl))
def test_the_sheet_solves_none_of_the_problems(dsl: Dsl) -> None:
    words = ("rmsnorm", "kv_indptr", "nvfp4", "topk", "delta")
    assert not [word for word in words if word in cheatsheet(dsl).lower()]
