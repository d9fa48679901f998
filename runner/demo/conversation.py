"""A conversation as both wires carry it: turns, tool calls, results, and its size in tokens."""

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

JsonObject = dict[str, Any]

BYTES_PER_TOKEN = 4

_PIECE_CHARACTERS = 400


class Role(StrEnum):
    """Who speaks in a turn."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True)
class Call:
    """One tool call; `call_id` is empty until a wire gives it one."""

    name: str
    arguments: JsonObject = field(default_factory=dict)
    call_id: str = ""

    @property
    def arguments_json(self) -> str:
        """The arguments as the wires send them: compact JSON."""
        return json.dumps(self.arguments, ensure_ascii=False, separators=(",", ":"))

    @property
    def n_bytes(self) -> int:
        """UTF-8 bytes of the name and the arguments."""
        return _n_bytes(self.name) + _n_bytes(self.arguments_json)


@dataclass(frozen=True)
class Turn:
    """One message. `answers` is the id of the call whose result a tool turn holds."""

    role: Role
    text: str = ""
    calls: tuple[Call, ...] = ()
    answers: str = ""

    @property
    def n_bytes(self) -> int:
        """UTF-8 bytes of the text and of every call."""
        return _n_bytes(self.text) + sum(call.n_bytes for call in self.calls)


@dataclass(frozen=True)
class Tool:
    """A tool on offer; `parameters` is the JSON schema of its arguments."""

    name: str
    parameters: JsonObject = field(default_factory=dict)


@dataclass(frozen=True)
class Step:
    """A call that was made and the text of its result."""

    call: Call
    result: str


@dataclass(frozen=True)
class Conversation:
    """Everything that one request sent: the turns, and the tools that may be called."""

    turns: tuple[Turn, ...]
    tools: tuple[Tool, ...] = ()

    def __post_init__(self) -> None:
        _check_answers(self.turns)

    @property
    def steps(self) -> tuple[Step, ...]:
        """Every call with its result, oldest first."""
        results = {turn.answers: turn.text for turn in self.turns if turn.role is Role.TOOL}
        return tuple(
            Step(call, results[call.call_id]) for turn in self.turns for call in turn.calls
        )

    @property
    def n_calls(self) -> int:
        """How many calls were made so far: the next one gets the next number as its id."""
        return sum(len(turn.calls) for turn in self.turns)

    @property
    def digest(self) -> str:
        """24 hexadecimal digits that name the conversation; answers are called after them."""
        return hashlib.sha256(repr(self).encode("utf-8", "surrogatepass")).hexdigest()[:24]


@dataclass(frozen=True)
class Move:
    """What the scripted model answers: a text, and the calls it wants made in this order."""

    text: str
    calls: tuple[Call, ...] = ()

    def numbered(self, prefix: str, n_before: int) -> "Move":
        """Return the move with call ids that are unique within its conversation."""
        return Move(
            self.text,
            tuple(
                Call(call.name, call.arguments, f"{prefix}{number}")
                for number, call in enumerate(self.calls, start=n_before + 1)
            ),
        )


@dataclass(frozen=True)
class TokenCount:
    """Sizes of one exchange, in tokens; the input includes its cached part."""

    n_input: int
    n_cached: int
    n_output: int


@dataclass(frozen=True)
class ChatRequest:
    """One request, whichever wire it came by."""

    model: str
    conversation: Conversation
    streams: bool
    wants_stream_usage: bool = True


def count_tokens(conversation: Conversation, move: Move) -> TokenCount:
    """Count by one stated rule: a token is four UTF-8 bytes, the last one possibly short.

    Input is the text of every turn with the names and the compact JSON arguments of its calls;
    tool definitions are not counted. Cached is the part that the previous request of this
    conversation held already: all turns before the last assistant turn, 0 on the first request.
    """
    sizes = [turn.n_bytes for turn in conversation.turns]
    replies = [
        place for place, turn in enumerate(conversation.turns) if turn.role is Role.ASSISTANT
    ]
    n_seen = replies[-1] if replies else 0
    n_output = _n_bytes(move.text) + sum(call.n_bytes for call in move.calls)
    return TokenCount(_tokens(sum(sizes)), _tokens(sum(sizes[:n_seen])), _tokens(n_output))


def as_object(value: Any, name: str) -> JsonObject:
    """Return a JSON object, an empty one for null.

    Raises:
        ValueError: it is something else; the message calls it `name`.
    """
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise ValueError(f"{name} is a {type(value).__name__}; send an object")
    return value


def as_list(value: Any, name: str) -> list[Any]:
    """Return a JSON list, an empty one for null.

    Raises:
        ValueError: it is something else; the message calls it `name`.
    """
    if value is None:
        return []
    if not isinstance(value, list):
        raise ValueError(f"{name} is a {type(value).__name__}; send a list")
    return value


def pieces(text: str) -> Iterator[str]:
    """Cut a text into the pieces that are streamed one by one."""
    for start in range(0, len(text), _PIECE_CHARACTERS):
        yield text[start : start + _PIECE_CHARACTERS]


def _check_answers(turns: Sequence[Turn]) -> None:
    """Refuse what the real endpoints refuse: calls without results, results without calls."""
    open_ids: set[str] = set()
    for turn in turns:
        if turn.role is Role.TOOL:
            if turn.answers not in open_ids:
                raise ValueError(
                    f"tool result {turn.answers!r} answers no call of the assistant turn before it"
                )
            open_ids.remove(turn.answers)
        elif open_ids:
            break
        else:
            open_ids = {call.call_id for call in turn.calls}
    if open_ids:
        names = ", ".join(sorted(open_ids))
        raise ValueError(f"tool calls without a result: {names}; send one result for each")


def _tokens(n_bytes: int) -> int:
    return math.ceil(n_bytes / BYTES_PER_TOKEN)


def _n_bytes(text: str) -> int:
    # A lone surrogate is legal in JSON; counting must not fail on it.
    return len(text.encode("utf-8", "surrogatepass"))
