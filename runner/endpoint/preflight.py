"""Trying an endpoint once before any run: what works, in plain sentences, in the order tried."""

from collections.abc import Sequence
from dataclasses import dataclass

from runner.endpoint.chat import (
    Assistant,
    ChatMessage,
    ChatModel,
    Reply,
    Tool,
    ToolResult,
    User,
    arguments_object,
)
from runner.endpoint.errors import EndpointError, Kind

ECHO_TOOL = Tool(
    "report_ready",
    "Report that you can call tools.",
    {
        "type": "object",
        "properties": {"word": {"type": "string", "description": "The word you were given."}},
        "required": ["word"],
    },
)
WORD = "heron"
_QUESTION = f'Call the tool report_ready once, with the word "{WORD}".'

# What is known to work when a request fails in this way.
_REACHED = ("The address is allowed.", "The endpoint accepts connections.")
_BEFORE = {
    Kind.BLOCKED: (),
    Kind.UNAVAILABLE: _REACHED[:1],
    Kind.TIMED_OUT: _REACHED[:1],
    Kind.UNAUTHORISED: _REACHED,
    Kind.NOT_FOUND: _REACHED,
    Kind.REFUSED: _REACHED,
    Kind.MALFORMED: _REACHED,
    Kind.TOO_LARGE: _REACHED,
}


@dataclass(frozen=True)
class Check:
    """What a pre-flight found; `steps` are sentences, the last of a failed one says why."""

    passed: bool
    summary: str
    steps: tuple[str, ...]


def check(model: ChatModel, model_id: str) -> Check:
    """Ask for one tool call, answer it, and say how far that went."""
    history: list[ChatMessage] = [User(_QUESTION)]
    try:
        reply = model.chat(history, [ECHO_TOOL])
    except EndpointError as error:
        return failed(error, _BEFORE[error.kind])
    steps = [*_REACHED, "The key is accepted.", f"The model {model_id} answers."]
    call = reply.tool_calls[0] if reply.tool_calls else None
    if call is None or call.name != ECHO_TOOL.name:
        return _stopped(steps, "The model did not call the tool it was asked to call.")
    if (arguments_object(call.arguments) or {}).get("word") != WORD:
        return _stopped(steps, "The model called the tool with other arguments than it was told.")
    steps.append("The model calls tools with arguments.")
    history.append(Assistant(reply.text, reply.tool_calls))
    history += [ToolResult(item.call_id, "Ready. Say goodbye.") for item in reply.tool_calls]
    try:
        last = model.chat(history, [ECHO_TOOL])
    except EndpointError as error:
        return failed(error, steps)
    steps.append("The model takes the result of a tool call and goes on.")
    steps.append(_usage_sentence(reply, last))
    return Check(True, "The endpoint is ready for runs.", tuple(steps))


def failed(error: EndpointError, steps: Sequence[str] = ()) -> Check:
    """Return the check that an error ended, after the steps that went well."""
    return failed_in_words(error.sentence, steps)


def failed_in_words(sentence: str, steps: Sequence[str] = ()) -> Check:
    """Return the check that ended for the reason in `sentence`, given without its full stop."""
    return _stopped(list(steps), f"{sentence[0].upper()}{sentence[1:]}.")


def _stopped(steps: list[str], sentence: str) -> Check:
    return Check(False, sentence, (*steps, sentence))


def _usage_sentence(*replies: Reply) -> str:
    counts = [count for reply in replies for count in (reply.usage.n_input, reply.usage.n_output)]
    if None in counts:
        return "Token counts are not reported, so usage will be shown as unknown."
    return "Token counts are reported."
