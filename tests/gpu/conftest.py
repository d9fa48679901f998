"""These tests run under their own settings alone: the main suite's machine need not have a GPU."""

from pathlib import Path

import pytest


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    own = Path(__file__).parent / "pytest.ini"
    return None if config.inipath == own else True
