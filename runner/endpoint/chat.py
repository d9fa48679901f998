"""What an attempt says to a model and hears back, whichever wire protocol carries it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class ToolCall:
    """A tool that the model wants run; `arguments` is the JSON text as the model wrote it."""

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class System:
    """The standing instruction; at most one, at the front."""

    text: str


@dataclass(frozen=True)
class User:
    """Something we tell the model."""

    text: str


@dataclass(frozen=True)
class Assistant:
    """A turn of the model, handed back to it as history."""

    text: str
    tool_calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True)
class ToolResult:
    """What a tool call gave; follows the turn that asked for it."""

    call_id: str
    text: str


ChatMessage = System | User | Assistant | ToolResult


@dataclass(frozen=True)
class Tool:
    """A tool the model may call; `parameters` is a JSON schema of an object."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True)
class TurnUsage:
    """Tokens of one turn; a field is None when the endpoint did not report it.

    `n_input` includes `n_cached`, on either wire protocol.
    """

    n_input: int | None = None
    n_cached: int | None = None
    n_output: int | None = None


@dataclass(frozen=True)
class Reply:
    """One turn of the model. `stop_reason` is the endpoint's own word, "" when it gave none."""

    text: str
    tool_calls: tuple[ToolCall, ...]
    usage: TurnUsage
    stop_reason: str


class ChatModel(Protocol):
    """A model that answers one turn at a time."""

    def chat(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[Tool],
        *,
        timeout_sec: float | None = None,
    ) -> Reply:
        """Return the model's next turn.

        Args:
            messages: the whole conversation so far.
            tools: what the model may call.
            timeout_sec: the longest the turn may take, repeats included; None for the usual limit.

        Raises:
            EndpointError: no answer that can be used, for the reason its kind states.
        """


def cleaned(text: str) -> str:
    """Return text that every store accepts: no NUL, no half of a surrogate pair."""
    return (
        text.encode("utf-8", "replace").decode("utf-8").replace("\x00", "\N{REPLACEMENT CHARACTER}")
    )


def arguments_object(text: str) -> dict[str, Any] | None:
    """Read a tool call's arguments; None when they are no JSON object. Blank means no arguments."""
    if not text.strip():
        return {}
    try:
        arguments = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return arguments if isinstance(arguments, dict) else None
