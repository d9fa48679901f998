"""The attempt's record on its way home: numbered events with bounded bodies."""

from collections.abc import Callable, Sequence

from runner.attempt.budget import Budget
from runner.endpoint import ToolCall, TurnUsage
from runner.messages import AttemptEvent, AttemptOrder, JsonObject, Verdict

TEXT_LIMIT_CHARACTERS = 20_000
ARGUMENTS_LIMIT_CHARACTERS = 4_000


class Diary:
    """Numbers events within the lease and sends each on."""

    def __init__(
        self, order: AttemptOrder, budget: Budget, tell: Callable[[AttemptEvent], None]
    ) -> None:
        self._order = order
        self._budget = budget
        self._tell = tell
        self._sequence = 0

    def note(self, text: str) -> None:
        """Record something that happened around the conversation."""
        self._send("note", {"text": capped(text, TEXT_LIMIT_CHARACTERS)})

    def turn(
        self,
        role: str,
        text: str,
        *,
        tool_calls: Sequence[ToolCall] = (),
        usage: TurnUsage | None = None,
    ) -> None:
        """Record one turn; `role` is user, assistant or tool."""
        body: JsonObject = {
            "role": role,
            "text": capped(text, TEXT_LIMIT_CHARACTERS),
            "tool_calls": [
                {
                    "name": capped(call.name, 100),
                    "arguments": capped(call.arguments, ARGUMENTS_LIMIT_CHARACTERS),
                }
                for call in tool_calls
            ],
        }
        if usage is not None:
            body["usage"] = {
                "n_input_tokens": usage.n_input,
                "n_cached_tokens": usage.n_cached,
                "n_output_tokens": usage.n_output,
            }
        self._send("turn", body)

    def submission(self, number: int, kernel: str, verdict: Verdict, *, counted: bool) -> None:
        """Record a kernel sent for feedback, with what came back."""
        self._send(
            "submission",
            {
                "number": number,
                "kernel": kernel,
                "verdict": verdict.to_json(),
                "elapsed_sec": self._budget.elapsed_sec,
                "counted": counted,
            },
        )

    def _send(self, kind: str, body: JsonObject) -> None:
        self._sequence += 1
        self._tell(
            AttemptEvent(
                trial_id=self._order.trial_id,
                lease_token=self._order.lease_token,
                sequence=self._sequence,
                kind=kind,
                elapsed_sec=self._budget.elapsed_sec,
                body=body,
            )
        )


def capped(text: str, limit: int) -> str:
    """Return the text, its end replaced by a count when it is longer than `limit` characters."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}… [{len(text) - limit:,} more characters]"
