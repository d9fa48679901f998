"""A skip is allowed on a machine that lacks something, and a failure where CI is set."""

import os
import subprocess
import sys
from pathlib import Path

FILES = {
    "test_inside.py": "import pytest\ndef test_a():\n    pytest.skip('no GPU')\n",
    "test_marked.py": "import pytest\n@pytest.mark.skip('no GPU')\ndef test_a(): ...\n",
    "test_module.py": "import pytest\npytest.skip('no GPU', allow_module_level=True)\n",
    "test_xfail.py": "import pytest\n@pytest.mark.xfail\ndef test_a(): assert False\n",
    "test_fine.py": "def test_a(): ...\n",
}


def run(folder: Path, *, ci: bool) -> tuple[int, str]:
    """Run the files under our rule about skips; return the exit status and the summary."""
    for name, text in FILES.items():
        (folder / name).write_text(text)
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    command = [sys.executable, "-m", "pytest", "-p", "tests.conftest", "-p", "no:django", "-ra"]
    # Modules that do not load would stop the run before the rest is seen.
    command += ["--continue-on-collection-errors"]
    done = subprocess.run(
        [*command, "--rootdir", str(folder), "-c", os.devnull, str(folder)],
        env=environment | ({"CI": "1"} if ci else {}),
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def test_every_kind_of_skip_fails_where_ci_is_set(tmp_path: Path) -> None:
    status, told = run(tmp_path, ci=True)
    assert status == 1, told
    # A skip by mark comes before the test, and so counts as an error.
    assert "1 failed, 1 passed, 1 xfailed, 2 errors" in told
    assert told.count("counts as a failure where CI is set") >= 3


def test_skips_pass_elsewhere(tmp_path: Path) -> None:
    status, told = run(tmp_path, ci=False)
    assert status == 0, told
    assert "1 passed, 3 skipped, 1 xfailed" in told
