"""The page of problems says what the modules say."""

import json
from pathlib import Path

import pytest

from problems import catalog
from runner.grader import table

KEPT = table.DOCS / "problems.md"


def test_the_kept_page_is_the_generated_one() -> None:
    assert KEPT.read_text() == table.page(), "write it anew: python -m runner.grader.table"


def test_every_problem_has_its_line() -> None:
    lines = [line for line in table.page().splitlines() if line.startswith(("| 0", "| 1", "| 2"))]
    assert "| 02 | `02_gqa_paged_decode_h5_kv1_d128_ps1_bf16` | attention |" in lines[0] + lines[1]


def test_a_figure_of_other_semantics_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = catalog.find("36")
    row = {"eager_ms": 1.25, "anchor_ms": 2.5, "peak_gib": 0.75}
    kept = tmp_path / "measured.json"
    monkeypatch.setattr(table, "MEASURED", kept)
    for fingerprint, shown in (
        (problem.fingerprint, "| 1.25 | 2.5 | 0.75 |"),
        ("0", "| – | – | – |"),
    ):
        document = {
            "card": {"name": "some card"},
            "torch": "2",
            "measured_at": "2026-12-01T00:00:00",
            "problems": {problem.slug: {**row, "fingerprint": fingerprint}},
        }
        kept.write_text(json.dumps(document))
        line = next(line for line in table.page().splitlines() if problem.slug in line)
        assert shown in line
        assert "some card with torch 2 on 2026-12-01" in table.page().replace("\n", " ")
