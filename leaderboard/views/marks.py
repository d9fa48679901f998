"""What a transfer or a trial came to, as a sign, a word and a colour's name: never colour alone."""

from dataclasses import dataclass

from leaderboard.models import Transfer, Trial
from leaderboard.stats.paired import Effect
from runner.protocol import Outcome


@dataclass(frozen=True)
class Mark:
    """A sign and its word; `kind` is the style sheet's name for it."""

    kind: str
    sign: str
    word: str


HELP = Mark("help", "▲", "helped")
HARM = Mark("harm", "▼", "harmed")
NEUTRAL = Mark("neutral", "◆", "neutral")
SKIPPED = Mark("skipped", "○", "skipped")
INFRASTRUCTURE = Mark("infrastructure", "⟂", "infrastructure")
PENDING = Mark("pending", "…", "pending")
PASSED = Mark("passed", "●", "passed")
FAILED = Mark("failed", "×", "failed")

LEGEND = (HELP, HARM, NEUTRAL, SKIPPED, INFRASTRUCTURE, PENDING)

_EFFECTS = {Effect.HELPED: HELP, Effect.HARMED: HARM, Effect.NEUTRAL: NEUTRAL}
_WORDS = {
    Outcome.PASSED: "passed",
    Outcome.REFUSED: "refused before evaluation",
    Outcome.IMPORT_ERROR: "did not import",
    Outcome.COMPILE_ERROR: "did not compile",
    Outcome.RUNTIME_ERROR: "raised an exception",
    Outcome.WRONG_STRUCTURE: "returned the wrong structure",
    Outcome.WRONG_SHAPE: "returned a wrong shape",
    Outcome.WRONG_DTYPE: "returned a wrong dtype",
    Outcome.WRONG_VALUES: "returned wrong values",
    Outcome.NON_FINITE: "returned values that are not finite",
    Outcome.MUTATED_INPUT: "changed its inputs",
    Outcome.TIMEOUT: "ran out of time",
    Outcome.CRASH: "crashed",
    Outcome.OOM: "ran out of memory",
    Outcome.FORBIDDEN: "broke a rule",
    Outcome.NO_DSL_WORK: "did no work in the DSL",
    Outcome.TAMPERING: "tampered with the grading",
    Outcome.INFRASTRUCTURE: "could not be graded (infrastructure)",
}


def of_transfer(transfer: Transfer) -> Mark:
    """Return the mark of a transfer, resolved or not."""
    if transfer.effect is not None:
        return SKIPPED if transfer.is_skipped else _EFFECTS[transfer.effect]
    trials = (transfer.source, transfer.solo, transfer.conditioned)
    if any(trial.status == Trial.Status.FAILED for trial in trials):
        return INFRASTRUCTURE
    return PENDING


def of_trial(trial: Trial) -> Mark:
    """Return the mark of one trial, with its outcome in words once it is graded."""
    if trial.status == Trial.Status.GRADED:
        return of_outcome(trial.outcome)
    if trial.status == Trial.Status.SKIPPED:
        return SKIPPED
    if trial.status == Trial.Status.FAILED:
        return INFRASTRUCTURE
    words = {Trial.Status.RUNNING: "running", Trial.Status.QUEUED: "queued"}
    return Mark("pending", "…", words.get(Trial.Status(trial.status), "waiting"))


def of_outcome(outcome: str) -> Mark:
    """Return the mark of a grading: it passed, or in which way it did not."""
    if outcome == Outcome.INFRASTRUCTURE:
        return Mark("infrastructure", "⟂", _WORDS[Outcome.INFRASTRUCTURE])
    if outcome == Outcome.PASSED:
        return PASSED
    return Mark("failed", "×", _WORDS[Outcome(outcome)])
