"""The catalogue reads problem files without running them."""

import subprocess
import sys
from pathlib import Path

import pytest

from problems import catalog

PROBLEM = '''"""{title}"""

from library.shared import FACTOR

SOURCE = "ours"
WORKLOADS: dict[str, int] = {{"full": 4, "smoke": 2}}


def reference(x):
    """Double."""
    return FACTOR * x
'''


@pytest.fixture
def library(tmp_path: Path) -> Path:
    folder = tmp_path / "library"
    (folder / "toys").mkdir(parents=True)
    (folder / "shared.py").write_text('"""Shared."""\n\nFACTOR = 2\n')
    (folder / "toys" / "p07_double.py").write_text(PROBLEM.format(title="Double a number."))
    return folder


def fingerprint(library: Path) -> str:
    catalog.all_problems.cache_clear()
    return catalog.find("7", folder=library).fingerprint


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))


def test_problems_stand_in_six_families_by_number() -> None:
    problems = catalog.all_problems()
    numbers = [problem.number for problem in problems]
    assert numbers == sorted(set(numbers))
    assert {2, 25, 36, 49, 60, 72} <= set(numbers)
    assert len({problem.family for problem in problems}) == 6


def test_a_problem_knows_its_module_and_its_file() -> None:
    problem = catalog.find("2")
    assert problem.slug == "02_gqa_paged_decode_h5_kv1_d128_ps1_bf16"
    assert problem.module == f"problems.attention.p{problem.slug}"
    assert catalog.path(problem).is_file()
    assert catalog.source_text(problem).startswith(f'"""{problem.title}')
    assert "Apache-2.0" in problem.source


@pytest.mark.parametrize(
    "name", ["2", "02", "p02", " P2 ", "02_gqa_paged_decode_h5_kv1_d128_ps1_bf16"]
)
def test_a_problem_is_found_by_number_or_slug(name: str) -> None:
    assert catalog.find(name).number == 2


@pytest.mark.parametrize("name", ["", "75", "p99", "002", "02_gqa", "-2", "../02", "²"])
def test_an_unknown_name_is_answered_with_what_exists(name: str) -> None:
    with pytest.raises(LookupError, match=r"36_rmsnorm_h128_qwen3_30b_bf16"):
        catalog.find(name)


def test_workloads_are_read_in_the_order_written() -> None:
    assert catalog.workloads(catalog.find("36")) == (
        "full",
        "smoke",
        "heldout_1",
        "heldout_2",
        "heldout_3",
    )


def test_the_catalogue_never_loads_torch() -> None:
    program = (
        "import sys; from problems import catalog; catalog.workloads(catalog.find('60'));"
        "sys.exit('torch' in sys.modules)"
    )
    finished = subprocess.run([sys.executable, "-c", program], check=False, timeout=60)
    assert finished.returncode == 0


def test_sources_name_the_problem_first_and_then_what_it_imports() -> None:
    assert list(catalog.sources(catalog.find("60"))) == [
        "problems/quantization/p60_mamba2_output_projection_nemotron_nvfp4.py",
        "problems/quantization/nvfp4.py",
        "problems/tolerance.py",
    ]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return FACTOR * x", "return FACTOR * x  # twice"),
        ("return FACTOR * x", "return (\n        FACTOR * x\n    )"),
        ('"""Double."""', '"""Return twice the number."""'),
        ('"""Double a number."""', '"""Double any number."""\n\n\n# Nothing else.'),
    ],
)
def test_comments_docstrings_and_layout_leave_the_fingerprint(
    library: Path, old: str, new: str
) -> None:
    before = fingerprint(library)
    edit(library / "toys" / "p07_double.py", old, new)
    assert fingerprint(library) == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return FACTOR * x", "return FACTOR + x"),
        ('"full": 4', '"full": 5'),
        ("def reference(x)", "def reference(x, /)"),
        ("x):", "x=True):"),
    ],
)
def test_any_change_of_meaning_changes_the_fingerprint(library: Path, old: str, new: str) -> None:
    before = fingerprint(library)
    edit(library / "toys" / "p07_double.py", old, new)
    assert fingerprint(library) != before


def test_values_that_compare_equal_but_differ_in_type_differ_in_fingerprint(library: Path) -> None:
    edit(library / "toys" / "p07_double.py", "x):", "x=1):")
    as_integer = fingerprint(library)
    edit(library / "toys" / "p07_double.py", "x=1):", "x=True):")
    assert fingerprint(library) != as_integer


def test_a_shared_module_is_part_of_the_fingerprint(library: Path) -> None:
    before = fingerprint(library)
    edit(library / "shared.py", '"""Shared."""', '"""Shared by all."""')
    assert fingerprint(library) == before
    edit(library / "shared.py", "FACTOR = 2", "FACTOR = 3")
    assert fingerprint(library) != before


def test_a_module_that_nobody_imports_is_not(library: Path) -> None:
    before = fingerprint(library)
    (library / "toys" / "other.py").write_text("FACTOR = 4\n")
    assert fingerprint(library) == before


@pytest.mark.parametrize(
    "line",
    [
        "from library.toys import codec",
        "import library.toys.codec",
        "from library.toys.codec import X",
    ],
)
def test_every_way_to_import_a_shared_module_counts(library: Path, line: str) -> None:
    (library / "toys" / "codec.py").write_text("from library import deeper\nX = 1\n")
    (library / "deeper.py").write_text("Y = 1\n")
    edit(library / "toys" / "p07_double.py", "from library.shared", f"{line}\nfrom library.shared")
    before = fingerprint(library)
    edit(library / "deeper.py", "Y = 1", "Y = 2")
    assert fingerprint(library) != before


def test_only_files_with_a_number_are_problems(library: Path) -> None:
    catalog.all_problems.cache_clear()
    (library / "toys" / "packing.py").write_text("")
    (library / "toys" / "p7_short.py").write_text("")
    assert [problem.slug for problem in catalog.all_problems(library)] == ["07_double"]


def test_two_problems_with_one_number_are_refused(library: Path) -> None:
    catalog.all_problems.cache_clear()
    (library / "toys" / "p07_again.py").write_text(PROBLEM.format(title="Double again."))
    with pytest.raises(ValueError, match=r"share number 7"):
        catalog.all_problems(library)


@pytest.mark.parametrize(
    ("old", "new"), [('"""Double a number."""\n', ""), ('SOURCE = "ours"\n', "")]
)
def test_a_problem_without_title_or_source_is_refused(library: Path, old: str, new: str) -> None:
    edit(library / "toys" / "p07_double.py", old, new)
    with pytest.raises(ValueError, match=r"p07_double.py lacks a title line or SOURCE"):
        fingerprint(library)


def test_workloads_that_are_computed_are_refused(library: Path) -> None:
    catalog.all_problems.cache_clear()
    edit(library / "toys" / "p07_double.py", '{"full": 4, "smoke": 2}', "dict(full=4)")
    with pytest.raises(ValueError, match=r"one dictionary literal"):
        catalog.workloads(catalog.find("7", folder=library), folder=library)
