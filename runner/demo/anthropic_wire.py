"""The Anthropic Messages wire: requests in, answers, streamed events and errors out."""

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

PATH = "/v1/messages"

_ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
}


def read(body: JsonObject) -> ChatRequest:
    """Read a request body.

    Raises:
        ValueError: a required field is missing or has another type than the wire gives it.
    """
    messages = as_list(body.get("messages"), "messages")
    if not messages:
        raise ValueError("messages must be a list of at least one message")
    limit = body.get("max_tokens")
    if not isinstance(limit, int) or limit < 1:
        raise ValueError("max_tokens must be a whole number of at least 1")
    turns = [Turn(Role.SYSTEM, _text(body["system"]))] if body.get("system") else []
    for message in messages:
        turns.extend(_turns(message))
    return ChatRequest(
        model=str(body.get("model", "")),
        conversation=Conversation(turns=tuple(turns), tools=_tools(body)),
        streams=bool(body.get("stream")),
    )


def answer(request: ChatRequest, move: Move) -> JsonObject:
    """Return the whole answer as one `message` object."""
    move = _numbered(request, move)
    usage = _usage(count_tokens(request.conversation, move))
    message = _envelope(request, usage)
    text_blocks = [{"type": "text", "text": move.text}] if move.text else []
    return {
        **message,
        "content": [*text_blocks, *(_tool_block(call, call.arguments) for call in move.calls)],
        "stop_reason": _stop_reason(move),
    }


def events(request: ChatRequest, move: Move) -> Iterator[str]:
    """Yield the answer as named server-sent events, up to and including `message_stop`."""
    move = _numbered(request, move)
    usage = _usage(count_tokens(request.conversation, move))
    # The real endpoint counts output as it goes: one token at the start, the total at the end.
    yield _event("message_start", message=_envelope(request, {**usage, "output_tokens": 1}))
    index = 0
    if move.text:
        yield from _block(
            index, {"type": "text", "text": ""}, ("text_delta", "text"), text=move.text
        )
        index += 1
    for place, call in enumerate(move.calls, start=index):
        how = ("input_json_delta", "partial_json")
        yield from _block(place, _tool_block(call, {}), how, text=call.arguments_json)
    delta = {"stop_reason": _stop_reason(move), "stop_sequence": None}
    yield _event("message_delta", delta=delta, usage=usage)
    yield _event("message_stop")


def error(status: int, message: str) -> JsonObject:
    """Return the body of an error answer."""
    kind = _ERROR_TYPES.get(status, "invalid_request_error")
    return {"type": "error", "error": {"type": kind, "message": message}}


def models(model_ids: tuple[str, ...]) -> JsonObject:
    """Return the model list; all of it is on the first page."""
    return {
        "data": [model(model_id) for model_id in model_ids],
        "has_more": False,
        "first_id": model_ids[0],
        "last_id": model_ids[-1],
    }


def model(model_id: str) -> JsonObject:
    """Return one model's record; it was made at no particular time, so that is the epoch."""
    return {
        "type": "model",
        "id": model_id,
        "display_name": "Demo (scripted)",
        "created_at": "1970-01-01T00:00:00Z",
    }


def _turns(message: Any) -> Iterator[Turn]:
    """Yield the turns of one message: results of calls are blocks of a user message here."""
    if not isinstance(message, dict) or message.get("role") not in ("user", "assistant"):
        raise ValueError("each message needs the role user or assistant")
    content = message.get("content")
    if isinstance(content, str):
        yield Turn(Role(message["role"]), content)
        return
    if not isinstance(content, list) or not all(isinstance(block, dict) for block in content):
        raise ValueError("message content must be a string or a list of blocks")
    results = [block for block in content if block.get("type") == "tool_result"]
    for block in results:
        yield Turn(
            Role.TOOL, _text(block.get("content")), answers=str(block.get("tool_use_id", ""))
        )
    calls = tuple(_call(block) for block in content if block.get("type") == "tool_use")
    text = _text([block for block in content if block.get("type") == "text"])
    if text or calls or not results:
        yield Turn(Role(message["role"]), text, calls)


def _text(content: Any) -> str:
    """Join what a message, a result or a system prompt says."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "".join(str(block.get("text", "")) for block in content if isinstance(block, dict))
    raise ValueError(f"content is a {type(content).__name__}; send a string or a list of blocks")


def _call(block: JsonObject) -> Call:
    arguments = block.get("input")
    if not isinstance(arguments, dict) or "name" not in block or "id" not in block:
        raise ValueError("each tool_use block needs id, name and input (an object)")
    return Call(str(block["name"]), arguments, str(block["id"]))


def _tools(body: JsonObject) -> tuple[Tool, ...]:
    """Return the tools that may be called: all on offer, none, or the one that is demanded."""
    choice = as_object(body.get("tool_choice"), "tool_choice")
    tools = []
    for tool in as_list(body.get("tools"), "tools"):
        if not isinstance(tool, dict) or "name" not in tool:
            raise ValueError("each tool needs a name and an input_schema")
        schema = as_object(tool.get("input_schema"), "input_schema")
        tools.append(Tool(str(tool["name"]), schema))
    if choice.get("type") == "none":
        return ()
    return tuple(tool for tool in tools if choice.get("name") in (None, tool.name))


def _numbered(request: ChatRequest, move: Move) -> Move:
    return move.numbered("toolu_scripted_", request.conversation.n_calls)


def _block(index: int, opening: JsonObject, how: tuple[str, str], *, text: str) -> Iterator[str]:
    """Yield one content block; `how` names its delta type and the delta's field."""
    kind, name = how
    yield _event("content_block_start", index=index, content_block=opening)
    for piece in pieces(text):
        yield _event("content_block_delta", index=index, delta={"type": kind, name: piece})
    yield _event("content_block_stop", index=index)


def _tool_block(call: Call, arguments: JsonObject) -> JsonObject:
    return {"type": "tool_use", "id": call.call_id, "name": call.name, "input": arguments}


def _stop_reason(move: Move) -> str:
    return "tool_use" if move.calls else "end_turn"


def _envelope(request: ChatRequest, usage: JsonObject) -> JsonObject:
    """Return an answer with no content yet; the id is a digest, for no clock is read here."""
    return {
        "id": f"msg_scripted_{request.conversation.digest}",
        "type": "message",
        "role": "assistant",
        "model": request.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }


def _usage(count: TokenCount) -> JsonObject:
    """Return usage in this wire's sense: `input_tokens` leaves the cached part out."""
    return {
        "input_tokens": count.n_input - count.n_cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": count.n_cached,
        "output_tokens": count.n_output,
    }


def _event(name: str, **fields: Any) -> str:
    return f"event: {name}\ndata: {json.dumps({'type': name, **fields})}\n\n"
