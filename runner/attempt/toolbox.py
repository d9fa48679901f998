"""The tools a model is given: their descriptions, and what each call comes to."""

import os
import shutil
from collections.abc import Callable
from typing import Any

from runner import sandbox
from runner.attempt.budget import Budget
from runner.attempt.submissions import Submissions
from runner.attempt.workspace import PathRefusedError, Workspace
from runner.endpoint import Tool, ToolCall, arguments_object
from runner.protocol import KERNEL_LIMIT_BYTES

SHELL_LIMIT_SEC = 60.0
SHELL_OUTPUT_LIMIT_BYTES = 20_000
N_CORES = 2
LIMITS = sandbox.Limits(
    memory_bytes=8 << 30, n_processes=256, file_bytes=256 << 20, tmp_bytes=1 << 30
)


def _schema(**properties: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            name: {"type": "string", "description": text} for name, text in properties.items()
        },
        "required": list(properties),
        "additionalProperties": False,
    }


TOOLS = (
    Tool(
        "run_shell",
        "Run a shell command in the folder and return what it prints.",
        _schema(command="The command line, for bash."),
    ),
    Tool(
        "write_file",
        "Write a text file in the folder, whole; what was there is replaced.",
        _schema(path="Path below the folder.", content="The file's whole text."),
    ),
    Tool("submit", "Have kernel.py graded as it stands and return the verdict.", _schema()),
    Tool("finish", "End the attempt; kernel.py and SKILL.md stay as they are.", _schema()),
)


class Toolbox:
    """Runs tool calls. Nothing a model asks for raises: what goes wrong is told to it as text."""

    def __init__(
        self, workspace: Workspace, submissions: Submissions, budget: Budget, *, cores: list[int]
    ) -> None:
        self._workspace = workspace
        self._submissions = submissions
        self._budget = budget
        self._cores = cores
        self._wants_to_finish = False

    @property
    def wants_to_finish(self) -> bool:
        """Whether `finish` was called."""
        return self._wants_to_finish

    def call(self, call: ToolCall) -> str:
        """Return what the model is told about one tool call."""
        tool = next((tool for tool in TOOLS if tool.name == call.name), None)
        if tool is None:
            names = ", ".join(tool.name for tool in TOOLS)
            return f"There is no tool {call.name[:100]!r}; there are: {names}."
        arguments = arguments_object(call.arguments)
        if arguments is None:
            return f"The arguments of {tool.name} are not a JSON object; call it again."
        if fault := _fault(tool, arguments):
            return fault
        run: Callable[..., str] = getattr(self, f"_{tool.name}")
        return run(**arguments)

    def _run_shell(self, command: str) -> str:
        limit_sec = max(1.0, min(SHELL_LIMIT_SEC, self._budget.left_sec))
        finished = sandbox.run(
            [shutil.which("bash") or "sh", "-c", command],
            folder=self._workspace.folder,
            writable=True,
            limits=LIMITS,
            cores=self._cores,
            timeout_sec=limit_sec,
            output_limit_bytes=SHELL_OUTPUT_LIMIT_BYTES,
        )
        return _told(finished, limit_sec)

    def _write_file(self, path: str, content: str) -> str:
        n_bytes = len(content.encode("utf-8", "replace"))
        if n_bytes > KERNEL_LIMIT_BYTES:
            return f"{n_bytes:,} bytes are too many: a file may have {KERNEL_LIMIT_BYTES:,}."
        try:
            return f"Wrote {self._workspace.write(path, content):,} bytes to {path}."
        except PathRefusedError as error:
            return f"Not written: {error}."

    def _submit(self) -> str:
        return self._submissions.submit()

    def _finish(self) -> str:
        self._wants_to_finish = True
        return "The attempt ends."


def cores_for(trial_id: int) -> list[int]:
    """Return the processor cores of an attempt; neighbours in number get different ones."""
    allowed = sorted(os.sched_getaffinity(0))
    return sorted({allowed[(N_CORES * trial_id + step) % len(allowed)] for step in range(N_CORES)})


def _fault(tool: Tool, arguments: dict[str, Any]) -> str | None:
    """Say how arguments differ from the tool's schema: all strings, none missing, none unknown."""
    expected = tool.parameters["properties"]
    if unknown := sorted(set(arguments) - set(expected)):
        return f"{tool.name} takes no {', '.join(unknown)[:200]}; call it again."
    for name in expected:
        if not isinstance(arguments.get(name), str):
            return f"{tool.name} needs {name} as a string; call it again."
    return None


def _told(finished: sandbox.Finished, limit_sec: float) -> str:
    """Return a command's output with how it ended, in one text."""
    parts = [finished.stdout.decode("utf-8", "replace")]
    if finished.stderr:
        parts.append("[stderr]\n" + finished.stderr.decode("utf-8", "replace"))
    if finished.n_dropped_bytes:
        parts.append(f"[{finished.n_dropped_bytes:,} more bytes of output were dropped]")
    if finished.timed_out:
        parts.append(f"[stopped after {limit_sec:.0f} s]")
    elif finished.returncode:
        parts.append(f"[exit status {finished.returncode}]")
    return "\n".join(part for part in parts if part).replace("\x00", "\\0") or "[no output]"
