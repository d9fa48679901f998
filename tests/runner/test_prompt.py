"""What an attempt is told, for every problem and arm, and what it is not told."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from problems import catalog
from problems.catalog import Problem
from runner import prompt, skill
from runner.messages import AttemptOrder, Endpoint
from runner.protocol import Arm, Dsl

PROBLEMS = catalog.all_problems()


def instruction(given: AttemptOrder, block: str | None = None) -> str:
    return prompt.instruction(given, PROBLEMS[0], skill_block=block)


def order(problem: Problem, arm: Arm = Arm.SOLO_TIRX, device: str = "cpu") -> AttemptOrder:
    return AttemptOrder(
        trial_id=1,
        lease_token="t",
        problem=problem.slug,
        problem_fingerprint=problem.fingerprint,
        arm=arm,
        device=device,
        workload="smoke",
        endpoint=Endpoint("openai", "https://vendor.example", "m"),
        budget_sec=2_400.0,
        submission_limit=10,
    )


@pytest.mark.parametrize("arm", list(Arm))
def test_the_instruction_names_task_language_and_budgets(arm: Arm) -> None:
    problem = PROBLEMS[0]
    block = skill.attach("Tile by 64.") if arm.source else None
    text = prompt.instruction(order(problem, arm), problem, skill_block=block)
    lines = text.splitlines()
    assert f"Problem: {problem.slug}" in lines
    assert f"DSL: {arm.dsl}" in lines
    assert ("import cutlass" in text) == (arm.dsl == "cutedsl")
    for words in ("40 minutes", "$", "SKILL.md", "300,000 bytes", "64,000 bytes", "600 seconds"):
        assert (words in text) == (words != "$")
    assert ("Tile by 64." in text) == (arm.source is not None)
    assert "heldout" not in text


def test_a_skill_with_the_templates_own_marks_comes_through_unchanged() -> None:
    text = "It cost $dsl and ${title}, 100 % of $$."
    told = instruction(order(PROBLEMS[0], Arm.TIRX_TO_CUTEDSL_SKILL), skill.attach(text))
    assert text in told
    assert "A skill from TIRx" in told


def test_an_agent_for_a_gpu_is_told_that_it_has_none_itself() -> None:
    assert "no GPU" in instruction(order(PROBLEMS[0], device="h200"))
    assert "no GPU" not in instruction(order(PROBLEMS[0]))


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
def test_no_file_of_the_folder_names_a_held_out_workload(problem: Problem) -> None:
    files = prompt.folder_files(problem, Dsl.TIRX, task="")
    assert {"TASK.md", "reference.py", "cheatsheet.md"} <= set(files)
    tree = ast.parse(files["reference.py"])
    words = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    assert {"full", "smoke"} <= words
    assert not [word for word in words if isinstance(word, str) and word.startswith("heldout")]


def test_every_reference_runs_from_its_folder_alone(tmp_path: Path) -> None:
    code = (
        "import sys, torch; sys.path.insert(0, sys.argv[1]); import reference\n"
        "inputs = reference.make_inputs('smoke', 'cpu'); reference.reference(*inputs)\n"
        "import problems; print(problems.__path__[0] if 'problems' in sys.modules else '')\n"
    )
    problem = next(item for item in PROBLEMS if len(catalog.sources(item)) > 1)
    for name, text in prompt.folder_files(problem, Dsl.TIRX, task="").items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == str(tmp_path / "problems")


def test_held_out_lines_go_and_lines_shared_with_others_stay() -> None:
    source = (
        'W = {\n    "full": 1,\n    "heldout_1": Sizes(\n        2,\n    ),\n}\n'
        'V = {"smoke": 1, "heldout_1": 2}\n'
    )
    assert prompt.without_heldout(source) == (
        'W = {\n    "full": 1,\n}\nV = {"smoke": 1, "heldout_1": 2}\n'
    )


@pytest.mark.parametrize(
    ("seconds", "words"), [(2_400, "40 minutes"), (90, "90 seconds"), (150, "150 seconds")]
)
def test_a_length_of_time_is_spelled_in_its_natural_unit(seconds: float, words: str) -> None:
    assert prompt.spelled(seconds) == words


@pytest.mark.parametrize("problem", catalog.all_problems(), ids=lambda problem: problem.slug[:2])
def test_every_problem_reads_well_without_its_held_out_workloads(problem: Problem) -> None:
    text = prompt.without_heldout(catalog.source_text(problem))
    ast.parse(text)
    assert "heldout" not in text
    seen = [name for name in catalog.workloads(problem) if not name.startswith("heldout")]
    assert all(f'"{name}"' in text for name in seen)


def test_a_held_out_entry_goes_with_the_dictionaries_inside_it() -> None:
    inner = '{\n        "a": 2,\n        "b": 3,\n    }'
    source = f'W = {{\n    "full": 1,\n    "heldout_1": {inner},\n}}\n'
    assert prompt.without_heldout(source) == 'W = {\n    "full": 1,\n}\n'
