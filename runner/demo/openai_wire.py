"""The OpenAI Chat Completions wire: requests in, answers, streamed chunks and errors out."""

import json
from collections.abc import Iterator
from typing import Any

from runner.demo.conversation import (
    Call,
    ChatRequest,
    Conversation,
    JsonObject,
    Move,
    Role,
    TokenCount,
    Tool,
    Turn,
    as_list,
    as_object,
    count_tokens,
    pieces,
)

PATH = "/v1/chat/completions"

_ROLES = {
    "system": Role.SYSTEM,
    "developer": Role.SYSTEM,
    "user": Role.USER,
    "assistant": Role.ASSISTANT,
    "tool": Role.TOOL,
}
_ERROR_TYPES = {401: "invalid_request_error", 429: "requests", 500: "server_error"}
_ERROR_CODES = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}


def read(body: JsonObject) -> ChatRequest:
    """Read a request body.

    Raises:
        ValueError: a required field is missing or has another type than the wire gives it.
    """
    messages = as_list(body.get("messages"), "messages")
    if not messages:
        raise ValueError("messages must be a list of at least one message")
    options = as_object(body.get("stream_options"), "stream_options")
    return ChatRequest(
        model=str(body.get("model", "")),
        conversation=Conversation(
            turns=tuple(_turn(message) for message in messages),
            tools=_tools(body),
        ),
        streams=bool(body.get("stream")),
        wants_stream_usage=bool(options.get("include_usage")),
    )


def answer(request: ChatRequest, move: Move) -> JsonObject:
    """Return the whole answer as one `chat.completion` object."""
    move = _numbered(request, move)
    message: JsonObject = {"role": "assistant", "content": move.text or None, "refusal": None}
    if move.calls:
        message["tool_calls"] = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments_json},
            }
            for call in move.calls
        ]
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": _finish_reason(move),
    }
    usage = _usage(count_tokens(request.conversation, move))
    return {**_envelope(request, "chat.completion"), "choices": [choice], "usage": usage}


def events(request: ChatRequest, move: Move) -> Iterator[str]:
    """Yield the answer as server-sent events, up to and including the `[DONE]` mark."""
    move = _numbered(request, move)
    base = _envelope(request, "chat.completion.chunk")
    if request.wants_stream_usage:
        base["usage"] = None
    for delta in _deltas(move):
        yield _event({**base, "choices": [_chunk_choice(delta, None)]})
    yield _event({**base, "choices": [_chunk_choice({}, _finish_reason(move))]})
    if request.wants_stream_usage:
        usage = _usage(count_tokens(request.conversation, move))
        yield _event({**base, "choices": [], "usage": usage})
    yield "data: [DONE]\n\n"


def error(status: int, message: str) -> JsonObject:
    """Return the body of an error answer."""
    return {
        "error": {
            "message": message,
            "type": _ERROR_TYPES.get(status, "invalid_request_error"),
            "param": None,
            "code": _ERROR_CODES.get(status),
        }
    }


def models(model_ids: tuple[str, ...]) -> JsonObject:
    """Return the model list."""
    return {"object": "list", "data": [model(model_id) for model_id in model_ids]}


def model(model_id: str) -> JsonObject:
    """Return one model's record. It was made at no particular time, so `created` is 0."""
    return {"id": model_id, "object": "model", "created": 0, "owned_by": "scripted"}


def _turn(message: Any) -> Turn:
    if not isinstance(message, dict) or message.get("role") not in _ROLES:
        raise ValueError(f"each message needs a role out of {', '.join(_ROLES)}")
    role = _ROLES[message["role"]]
    calls = tuple(_call(call) for call in as_list(message.get("tool_calls"), "tool_calls"))
    return Turn(role, _text(message.get("content")), calls, str(message.get("tool_call_id", "")))


def _text(content: Any) -> str:
    """Join what a message says; null is the content of an assistant that only calls tools."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    raise ValueError(f"message content is a {type(content).__name__}; send a string or parts")


def _call(call: Any) -> Call:
    try:
        function = call["function"]
        name, raw, call_id = function["name"], function["arguments"], call["id"]
    except (KeyError, TypeError) as error_seen:
        raise ValueError("each tool call needs id and function {name, arguments}") from error_seen
    try:
        arguments = json.loads(raw)
    except (TypeError, ValueError):
        arguments = {}
    return Call(str(name), arguments if isinstance(arguments, dict) else {}, str(call_id))


def _tools(body: JsonObject) -> tuple[Tool, ...]:
    """Return the tools that may be called: all on offer, none, or the one that is demanded."""
    choice = body.get("tool_choice")
    try:
        functions = [tool["function"] for tool in as_list(body.get("tools"), "tools")]
        tools = [
            Tool(str(item["name"]), as_object(item.get("parameters"), "parameters"))
            for item in functions
        ]
        demanded = choice["function"]["name"] if isinstance(choice, dict) else None
    except (AttributeError, KeyError, TypeError) as error_seen:
        raise ValueError("each tool needs type 'function' and function {name}") from error_seen
    if choice == "none":
        return ()
    return tuple(tool for tool in tools if demanded in (None, tool.name))


def _numbered(request: ChatRequest, move: Move) -> Move:
    return move.numbered("call_scripted_", request.conversation.n_calls)


def _deltas(move: Move) -> Iterator[JsonObject]:
    yield {"role": "assistant", "content": "" if move.text else None}
    for piece in pieces(move.text):
        yield {"content": piece}
    for index, call in enumerate(move.calls):
        opening = {
            "index": index,
            "id": call.call_id,
            "type": "function",
            "function": {"name": call.name, "arguments": ""},
        }
        yield {"tool_calls": [opening]}
        for piece in pieces(call.arguments_json):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _chunk_choice(delta: JsonObject, finish_reason: str | None) -> JsonObject:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}


def _finish_reason(move: Move) -> str:
    return "tool_calls" if move.calls else "stop"


def _envelope(request: ChatRequest, kind: str) -> JsonObject:
    """Return what answers and chunks share; the id is a digest, for no clock is read here."""
    return {
        "id": f"chatcmpl-scripted-{request.conversation.digest}",
        "object": kind,
        "created": 0,
        "model": request.model,
    }


def _usage(count: TokenCount) -> JsonObject:
    return {
        "prompt_tokens": count.n_input,
        "completion_tokens": count.n_output,
        "total_tokens": count.n_input + count.n_output,
        "prompt_tokens_details": {"cached_tokens": count.n_cached},
    }


def _event(payload: JsonObject) -> str:
    return f"data: {json.dumps(payload)}\n\n"
