"""What the scripted policy does alone, with a skill, after failures, and with nothing to go on."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runner.demo import plans
from runner.demo.conversation import Conversation, Role, Tool, Turn
from runner.demo.kernels import Shelf
from runner.demo.plans import SoloPlan
from runner.demo.policy import next_move
from runner.protocol import Dsl, Outcome
from tests.runner.demo.attempts import (
    SLUG,
    STRATEGIES,
    failed,
    instruction,
    make_shelf,
    passed,
    play,
)


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return make_shelf(tmp_path)


def grades(**verdicts: Any) -> Any:
    return lambda strategy: verdicts[strategy]


def measured_skill(shelf: Shelf, **verdicts: Any) -> str:
    """The skill that a solo attempt in CuTe DSL writes when its kernels are graded so."""
    skill = play(shelf, instruction(dsl=Dsl.CUTEDSL), grades(**verdicts)).skill
    assert skill is not None
    return skill


def test_alone_it_uses_all_four_tools_and_stops_at_the_first_kernel_that_beats_eager(
    shelf: Shelf,
) -> None:
    attempt = play(shelf, instruction(), grades(mixed=passed(1.2)))
    assert attempt.tools == ["run_shell", "write_file", "submit", "write_file", "finish"]
    assert attempt.submitted == ["mixed"]
    assert attempt.kernel == "mixed"


def test_alone_a_kernel_slower_than_eager_gets_one_more_strategy(shelf: Shelf) -> None:
    attempt = play(shelf, instruction(), grades(mixed=passed(0.8), fused=passed(1.5)))
    assert attempt.submitted == ["mixed", "fused"]
    assert attempt.kernel == "fused"


def test_alone_a_failure_gets_the_next_strategy(shelf: Shelf) -> None:
    attempt = play(shelf, instruction(), grades(mixed=failed(), fused=passed(1.5)))
    assert attempt.submitted == ["mixed", "fused"]
    assert attempt.kernel == "fused"


def test_patience_ends_after_two_submissions_and_the_best_is_put_back(shelf: Shelf) -> None:
    attempt = play(shelf, instruction(), grades(mixed=passed(0.8), fused=passed(0.5)))
    assert attempt.submitted == ["mixed", "fused"]
    assert attempt.kernel == "mixed"
    assert attempt.is_finished


def test_when_nothing_passes_the_last_try_stays_and_the_end_says_so(shelf: Shelf) -> None:
    attempt = play(shelf, instruction(), grades(mixed=failed("crash"), fused=failed("timeout")))
    assert attempt.kernel == "fused"
    assert "nothing passed" in attempt.said[-1]


def test_with_a_skill_it_starts_from_what_the_skill_measured_as_fastest(shelf: Shelf) -> None:
    skill = measured_skill(shelf, mixed=passed(0.5), fused=passed(3.0))
    attempt = play(shelf, instruction(skill=skill), grades(fused=passed(1.1)))
    assert attempt.submitted == ["fused"]
    assert attempt.kernel == "fused"


def test_it_trusts_advice_that_passes_even_when_slower_than_eager(shelf: Shelf) -> None:
    skill = measured_skill(shelf, mixed=passed(0.5), fused=passed(3.0))
    attempt = play(shelf, instruction(skill=skill), grades(fused=passed(0.3), mixed=passed(9.0)))
    assert attempt.submitted == ["fused"]
    assert attempt.kernel == "fused"


def test_advice_that_fails_is_followed_by_its_own_order(shelf: Shelf) -> None:
    skill = measured_skill(shelf, mixed=passed(0.5), fused=passed(3.0))
    attempt = play(shelf, instruction(skill=skill), grades(fused=failed(), mixed=passed(1.4)))
    assert attempt.submitted == ["fused", "mixed"]
    assert attempt.kernel == "mixed"


def test_a_strategy_that_the_skill_saw_fail_is_left_out(shelf: Shelf) -> None:
    skill = measured_skill(shelf, mixed=failed(), fused=failed("compile_error"))
    attempt = play(shelf, instruction(skill=skill), grades(tuned=passed(2.0)))
    assert attempt.submitted == ["tuned"]
    assert "mixed and fused fail" in attempt.said[0]


def test_a_skill_in_other_words_changes_nothing(shelf: Shelf) -> None:
    skill = "Vectorise loads.\nProblem: 01_other\nDSL: cutedsl"
    attempt = play(shelf, instruction(skill=skill), grades(mixed=passed(1.2)))
    assert attempt.submitted == ["mixed"]
    assert "work as if alone" in attempt.said[0]


def test_a_skill_that_names_an_unknown_strategy_as_best_is_no_stumbling_block(
    shelf: Shelf, tmp_path: Path
) -> None:
    other = make_shelf(tmp_path / "other", strategies=["woven"])
    skill = measured_skill(other, woven=passed(5.0))
    assert play(shelf, instruction(skill=skill), grades(mixed=passed(1.2))).kernel == "mixed"


def test_a_fault_of_the_host_is_submitted_again_but_not_for_ever(shelf: Shelf) -> None:
    attempt = play(shelf, instruction(), lambda _strategy: failed("infrastructure"))
    assert attempt.submitted == ["mixed", "mixed", "mixed", "fused"]
    assert attempt.is_finished


def test_no_submission_left_ends_the_search(shelf: Shelf) -> None:
    verdict = {**failed(), "remaining": 0}
    assert play(shelf, instruction(), grades(mixed=verdict)).submitted == ["mixed"]


def test_an_answer_that_is_no_verdict_ends_the_search(shelf: Shelf) -> None:
    attempt = play(shelf, instruction(), lambda _strategy: "the grader is on fire")
    assert attempt.submitted == ["mixed"]
    assert attempt.is_finished


def test_a_warning_that_time_runs_out_ends_the_search(shelf: Shelf) -> None:
    attempt = play(shelf, instruction(), grades(mixed=failed()), limit=3)
    assert attempt.tools == ["run_shell", "write_file", "submit"]
    warning = Turn(Role.USER, "Little time is left.")
    hurried = next_move(Conversation((*attempt.turns, warning)), shelf)
    assert [call.arguments["path"] for call in hurried.calls] == ["SKILL.md"]


def test_where_the_plan_is_silent_no_skill_is_written_and_the_end_gives_the_reason(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = SoloPlan(("mixed",), "a reason", silence="one measurement compares nothing.")
    monkeypatch.setitem(plans._PLANS, (98, Dsl.TIRX), silent)
    attempt = play(shelf, instruction(), grades(mixed=passed(1.2)))
    assert attempt.skill is None
    assert attempt.is_finished
    assert "I write no SKILL.md: one measurement compares nothing." in attempt.said[-1]


def test_exactly_one_packaged_plan_is_silent() -> None:
    assert sum(bool(plan.silence) for plan in plans._PLANS.values()) == 1


def test_a_problem_without_kernels_is_finished_without_one(shelf: Shelf) -> None:
    attempt = play(shelf, instruction(slug="97_nothing_here"), grades())
    assert attempt.tools == ["finish"]
    assert attempt.files == {}
    assert "no kernel for 97_nothing_here in TIRx" in attempt.said[0]


def test_after_finish_it_only_talks(shelf: Shelf) -> None:
    attempt = play(shelf, instruction(), grades(mixed=passed(1.2)))
    assert attempt.is_finished
    move = next_move(Conversation((*attempt.turns, Turn(Role.USER, "And now?"))), shelf)
    assert move.calls == ()
    assert "scripted" in move.text.lower()


def test_a_prompt_with_a_tool_and_no_problem_gets_that_tool_called_with_what_it_needs() -> None:
    schema = {
        "type": "object",
        "properties": {"word": {"type": "string"}, "n": {"type": "integer"}, "spare": {}},
        "required": ["word", "n"],
    }
    prompt = Turn(Role.USER, "Call the tool with the word 'ready'.")
    move = next_move(Conversation((prompt,), (Tool("answer", schema),)))
    assert [(call.name, call.arguments) for call in move.calls] == [
        ("answer", {"word": "ready", "n": 1})
    ]


def test_the_answer_to_its_generic_call_is_followed_by_words_alone() -> None:
    prompt = Turn(Role.USER, "Call the tool.")
    tool = Tool("ping")
    call = next_move(Conversation((prompt,), (tool,))).numbered("c", 0)
    turns = (prompt, Turn(Role.ASSISTANT, call.text, call.calls), Turn(Role.TOOL, "pong", (), "c1"))
    move = next_move(Conversation(turns, (tool,)))
    assert move.calls == ()
    assert "scripted" in move.text


def test_every_text_it_says_calls_it_scripted(shelf: Shelf) -> None:
    attempt = play(shelf, instruction(), grades(mixed=failed(), fused=passed(0.4)))
    assert all("scripted" in text.lower() for text in attempt.said)
    assert "scripted" in (attempt.skill or "")


VERDICTS = st.one_of(
    st.floats(0.01, 100).map(passed),
    st.sampled_from([outcome for outcome in Outcome if outcome is not Outcome.PASSED]).map(failed),
    st.sampled_from(["", "null", "[]", '{"outcome": "unheard_of"}', '{"outcome": "passed"}']),
)
SKILLS = st.one_of(
    st.none(),
    st.text(max_size=80),
    st.builds(
        "- Submission 1: {} passed, 1 ms against 2 ms for eager, 2.0 times as fast as eager.\n"
        "- Submission 2: {} failed (crash); it has no time.".format,
        st.sampled_from([*STRATEGIES, "other"]),
        st.sampled_from([*STRATEGIES, "other"]),
    ),
)


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(verdicts=st.lists(VERDICTS, min_size=12, max_size=12), skill=SKILLS)
def test_every_sequence_of_verdicts_comes_to_an_end_within_twelve_turns(
    shelf: Shelf, verdicts: list[Any], skill: str | None
) -> None:
    left = iter(verdicts)
    attempt = play(shelf, instruction(slug=SLUG, skill=skill), lambda _strategy: next(left))
    assert attempt.is_finished
    assert attempt.n_turns <= 12
    assert "kernel.py" in attempt.files


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(speeds=st.fixed_dictionaries({name: st.floats(0.05, 20) for name in STRATEGIES}))
def test_kernel_py_ends_as_the_fastest_that_was_measured(
    shelf: Shelf, speeds: dict[str, float]
) -> None:
    attempt = play(shelf, instruction(), lambda strategy: passed(speeds[strategy]))
    assert attempt.kernel is not None
    assert speeds[attempt.kernel] == max(speeds[name] for name in attempt.submitted)
