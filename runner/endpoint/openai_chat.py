"""Chat Completions, as OpenAI's SDK speaks it, behind ChatModel."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx2
import openai
from openai.types.chat import (
    ChatCompletionAssistantMessageParam,
    ChatCompletionChunk,
    ChatCompletionFunctionToolParam,
    ChatCompletionMessageFunctionToolCallParam,
    ChatCompletionMessageParam,
)

from runner.endpoint.chat import (
    Assistant,
    ChatMessage,
    Reply,
    System,
    Tool,
    ToolCall,
    ToolResult,
    TurnUsage,
    User,
    arguments_object,
    cleaned,
)
from runner.endpoint.errors import EndpointError, Kind, explain
from runner.endpoint.guard import Ration
from runner.endpoint.patience import Patience, insist


class OpenAiChat:
    """A model behind an OpenAI-compatible endpoint."""

    def __init__(
        self, client: openai.OpenAI, *, model_id: str, ration: Ration, patience: Patience
    ) -> None:
        self._client = client
        self._model_id = model_id
        self._ration = ration
        self._patience = patience

    def chat(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[Tool],
        *,
        timeout_sec: float | None = None,
    ) -> Reply:
        """Return the model's next turn; see ChatModel."""
        wire_messages = [_message(message) for message in messages]
        wire_tools = [_tool(tool) for tool in tools]

        def ask(limit_sec: float) -> Reply:
            self._ration.renew(limit_sec)
            try:
                with self._client.chat.completions.create(
                    model=self._model_id,
                    messages=wire_messages,
                    tools=wire_tools or openai.omit,
                    stream=True,
                    stream_options={"include_usage": True},
                ) as stream:
                    return _read(stream)
            except (openai.OpenAIError, EndpointError, httpx2.HTTPError) as error:
                raise explain(error) from error
            except (ValueError, TypeError, LookupError, AttributeError) as error:
                # SDKs hand out whatever JSON came, so a strange shape shows as any of these.
                raise explain(error) from error

        return insist(ask, patience=self._patience, timeout_sec=timeout_sec)


def open_openai(base_url: str, api_key: str, http_client: httpx2.Client) -> openai.OpenAI:
    """Return an SDK client that repeats nothing by itself."""
    return openai.OpenAI(
        base_url=base_url,
        api_key=api_key,
        max_retries=0,
        timeout=http_client.timeout,
        http_client=http_client,
    )


def _message(message: ChatMessage) -> ChatCompletionMessageParam:
    match message:
        case System(text):
            return {"role": "system", "content": text}
        case User(text):
            return {"role": "user", "content": text}
        case ToolResult(call_id, text):
            return {"role": "tool", "tool_call_id": call_id, "content": text}
        case Assistant(text, tool_calls):
            said: ChatCompletionAssistantMessageParam = {"role": "assistant", "content": text}
            if tool_calls:
                said["tool_calls"] = [_tool_call(call) for call in tool_calls]
            return said


def _tool_call(call: ToolCall) -> ChatCompletionMessageFunctionToolCallParam:
    # Chat templates of several servers fail on history that holds broken JSON.
    arguments = call.arguments if arguments_object(call.arguments) is not None else "{}"
    return {
        "id": call.call_id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }


def _tool(tool: Tool) -> ChatCompletionFunctionToolParam:
    return {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": dict(tool.parameters),
        },
    }


@dataclass
class _Draft:
    """A tool call while its pieces arrive."""

    call_id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)


def _read(stream: Iterable[ChatCompletionChunk]) -> Reply:
    texts: list[str] = []
    drafts: dict[int, _Draft] = {}
    usage = TurnUsage()
    stop_reason = None
    n_choices = 0
    for chunk in stream:
        if chunk.usage is not None:
            usage = _usage(chunk)
        for choice in (chunk.choices or [])[:1]:
            n_choices += 1
            stop_reason = choice.finish_reason or stop_reason
            if choice.delta is None:
                continue
            texts.append(choice.delta.content or "")
            for piece in choice.delta.tool_calls or []:
                _collect(drafts, piece)
    if n_choices == 0:
        raise EndpointError(Kind.MALFORMED, "the answer is no stream of chat completion chunks")
    if stop_reason is None:
        raise EndpointError(Kind.UNAVAILABLE, "the answer broke off before it was whole")
    calls = tuple(
        ToolCall(draft.call_id or f"call_{index}", draft.name, cleaned("".join(draft.pieces)))
        for index, draft in sorted(drafts.items())
    )
    return Reply(cleaned("".join(texts)), calls, usage, str(stop_reason))


def _collect(drafts: dict[int, _Draft], piece: Any) -> None:
    """Add one delta to its tool call; a server that sends no index sends whole calls in turn."""
    index = piece.index if piece.index is not None else len(drafts)
    draft = drafts.setdefault(int(index), _Draft())
    draft.call_id = draft.call_id or piece.id or ""
    if piece.function is not None:
        draft.name = draft.name or cleaned(piece.function.name or "")
        draft.pieces.append(piece.function.arguments or "")


def _usage(chunk: ChatCompletionChunk) -> TurnUsage:
    usage = chunk.usage
    details = usage.prompt_tokens_details if usage else None
    return TurnUsage(
        n_input=_count(usage.prompt_tokens if usage else None),
        n_cached=_count(details.cached_tokens if details else None),
        n_output=_count(usage.completion_tokens if usage else None),
    )


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and value >= 0 else None
