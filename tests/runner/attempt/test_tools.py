"""The tools in the sandbox: what a call comes to, however it is meant."""

import pytest

from runner.endpoint import ToolCall
from runner.protocol import EndReason, Outcome
from tests.runner.attempt.scripted import (
    call,
    play,
    reply,
    write,
)

FINISH = reply("done", call("finish"))
KERNEL = "def solve(*inputs):\n    return inputs\n"
SKILL = "Blocks of 64 gained 1.4 ×, measured twice.\n"


def test_the_folder_holds_the_task_the_reference_and_the_notes() -> None:
    shell = (
        'ls; python -c \'import reference; print(reference.make_inputs("smoke", "cpu")[0].dtype)\''
    )
    played = play(reply("", call("run_shell", command=shell)), FINISH)
    listing = played.model.told[0]
    for name in ("TASK.md", "cheatsheet.md", "reference.py", "torch.bfloat16"):
        assert name in listing


def test_the_reference_names_no_held_out_workload() -> None:
    shell = "grep -rn heldout . ; echo searched"
    played = play(reply("", call("run_shell", command=shell)), FINISH)
    assert played.model.told == ["searched\n"]


@pytest.mark.parametrize(
    "command",
    [
        "rm -f kernel.py; ln -s /etc/passwd kernel.py",
        "rm -f kernel.py; mkfifo kernel.py",
        "rm -f kernel.py; mkdir kernel.py",
        "printf '\\377' > kernel.py",
        "head -c 300001 /dev/zero | tr '\\0' x > kernel.py",
    ],
)
def test_what_is_planted_as_a_kernel_is_refused_and_never_graded(command: str) -> None:
    played = play(
        reply("", write("kernel.py", KERNEL)), reply("", call("run_shell", command=command)), FINISH
    )
    assert played.report.verdict is not None
    assert played.report.verdict.outcome is Outcome.REFUSED
    assert played.judge.kernels == []


@pytest.mark.parametrize(
    ("tool_call", "answer"),
    [
        (call("delete_everything"), "There is no tool 'delete_everything'"),
        (ToolCall("i", "run_shell", '{"command": '), "not a JSON object"),
        (ToolCall("i", "run_shell", "[]"), "not a JSON object"),
        (call("run_shell"), "needs command as a string"),
        (call("run_shell", command=["ls"]), "needs command as a string"),
        (call("submit", kernel="x"), "takes no kernel"),
        (call("write_file", path="a"), "needs content"),
        (call("write_file", path="../a", content="x"), "Not written"),
        (call("write_file", path="/etc/x", content="x"), "Not written"),
        (call("write_file", path="a", content="x" * 300_001), "300,001 bytes are too many"),
        (call("wants_to_finish"), "There is no tool"),
    ],
)
def test_a_tool_call_that_cannot_be_run_is_explained_and_the_attempt_goes_on(
    tool_call: ToolCall, answer: str
) -> None:
    played = play(reply("", tool_call), FINISH)
    assert answer in played.model.told[0]
    assert played.report.end_reason is EndReason.FINISHED


def test_every_call_of_a_turn_gets_its_answer_in_order() -> None:
    shell = call("run_shell", command="cat a.txt; exit 3")
    played = play(reply("", write("a.txt", "hello"), shell), FINISH)
    assert played.model.told == ["Wrote 5 bytes to a.txt.", "hello\n[exit status 3]"]


def test_long_output_is_cut_and_the_rest_counted() -> None:
    shell = call("run_shell", command="head -c 1000000 /dev/zero | tr '\\0' y")
    played = play(reply("", shell), FINISH)
    assert len(played.model.told[0]) < 25_000
    assert "more bytes" in played.model.told[0]


def test_a_file_of_ours_can_be_changed_from_the_shell_and_back() -> None:
    shell = call("run_shell", command="echo two >> kernel.py; cat kernel.py")
    played = play(
        reply("", write("kernel.py", "one\n"), shell, write("kernel.py", "three\n")),
        FINISH,
    )
    assert played.model.told[1] == "one\ntwo\n"
    assert played.report.kernel == "three\n"


def test_too_many_calls_in_one_turn_are_not_run() -> None:
    played = play(reply("", *[write(f"f{number}", "") for number in range(20)]), FINISH)
    assert sum(text.startswith("Wrote") for text in played.model.told) == 16
