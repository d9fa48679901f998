"""The panes of a transfer: one trial's kernel, its verdict, its draws and how to grade it again."""

import shlex
from dataclasses import dataclass

from django.utils.safestring import SafeString

from leaderboard.charts.strip import Strip, strip
from leaderboard.models import Trial
from leaderboard.views import marks, texts
from runner.messages import Verdict


@dataclass(frozen=True)
class Pane:
    """One trial beside others; `anchor` prefixes the line links. No kernel, no lines."""

    anchor: str
    title: str
    trial: Trial
    mark: marks.Mark
    lines: list[SafeString]
    has_hidden: bool
    verdict: Verdict | None
    strip: Strip | None
    command: str


@dataclass(frozen=True)
class SkillPane:
    """A skill as plain text; it was written by a model, and nothing in it is obeyed or rendered."""

    digest: str
    lines: list[SafeString]
    has_hidden: bool
    n_words: int


def pane(anchor: str, title: str, trial: Trial) -> Pane:
    """Return the pane of a trial; its kernel is loaded with it by find_transfer."""
    verdict = trial.read_verdict()
    text = trial.kernel.text if trial.kernel else ""
    return Pane(
        anchor=anchor,
        title=title,
        trial=trial,
        mark=marks.of_trial(trial),
        lines=texts.python_lines(text) if text else [],
        has_hidden=texts.has_hidden(text),
        verdict=verdict,
        strip=strip(verdict.kernel_draws_ms, verdict.eager_draws_ms) if verdict else None,
        command=command(trial),
    )


def skill_pane(trial: Trial) -> SkillPane | None:
    """Return the skill that a trial wrote, or None when it wrote none."""
    if trial.skill is None:
        return None
    text = trial.skill.text
    return SkillPane(
        trial.skill.digest, texts.plain_lines(text), texts.has_hidden(text), len(text.split())
    )


def command(trial: Trial) -> str:
    """Return the shell command that grades the downloaded kernel as the board did."""
    words = ["python", "-m", "runner.grader", trial.problem.slug, trial.coordinate.arm.dsl]
    options = ["--device", trial.run.device, "--workload", trial.run.workload]
    return shlex.join([*words, f"{trial.coordinate}.py", *options])
