"""Messages, as Anthropic's SDK speaks it, behind ChatModel."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import anthropic
import httpx2
from anthropic.types import MessageParam, RawMessageStreamEvent, ToolParam

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

# The wire protocol asks for a number; a 300 kB kernel would not fit one turn under any limit.
OUTPUT_LIMIT_TOKENS = 32_000


class AnthropicChat:
    """A model behind an endpoint that speaks Anthropic's Messages."""

    def __init__(
        self, client: anthropic.Anthropic, *, model_id: str, ration: Ration, patience: Patience
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
        system = "\n\n".join(item.text for item in messages if isinstance(item, System))
        wire_messages = _conversation(messages)
        wire_tools = [_tool(tool) for tool in tools]

        def ask(limit_sec: float) -> Reply:
            self._ration.renew(limit_sec)
            try:
                with self._client.messages.create(
                    model=self._model_id,
                    max_tokens=OUTPUT_LIMIT_TOKENS,
                    system=system or anthropic.omit,
                    messages=wire_messages,
                    tools=wire_tools or anthropic.omit,
                    stream=True,
                ) as stream:
                    return _read(stream)
            except (anthropic.AnthropicError, EndpointError, httpx2.HTTPError) as error:
                raise explain(error) from error
            except (ValueError, TypeError, LookupError, AttributeError) as error:
                # SDKs hand out whatever JSON came, so a strange shape shows as any of these.
                raise explain(error) from error

        return insist(ask, patience=self._patience, timeout_sec=timeout_sec)


def open_anthropic(base_url: str, api_key: str, http_client: httpx2.Client) -> anthropic.Anthropic:
    """Return an SDK client that repeats nothing by itself."""
    return anthropic.Anthropic(
        base_url=base_url,
        api_key=api_key,
        max_retries=0,
        timeout=http_client.timeout,
        http_client=http_client,
    )


def _conversation(messages: Sequence[ChatMessage]) -> list[MessageParam]:
    """Return alternating turns: what stands between two turns of the model is one turn of ours."""
    turns: list[dict[str, Any]] = []
    for message in messages:
        role, blocks = _blocks(message)
        if not blocks:
            continue
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        else:
            turns.append({"role": role, "content": blocks})
    if turns:
        # An attempt sends its history again with every turn; this lets the provider reuse it.
        turns[-1]["content"][-1]["cache_control"] = {"type": "ephemeral"}
    return cast("list[MessageParam]", turns)


def _blocks(message: ChatMessage) -> tuple[str, list[dict[str, Any]]]:
    match message:
        case System():
            return "system", []
        case User(text):
            return "user", [{"type": "text", "text": text}]
        case ToolResult(call_id, text):
            return "user", [{"type": "tool_result", "tool_use_id": call_id, "content": text}]
        case Assistant(text, tool_calls):
            # The wire protocol refuses empty text, and a turn without content.
            said = text.strip() or ("" if tool_calls else "(nothing)")
            texts = [{"type": "text", "text": said}] if said else []
            return "assistant", [*texts, *(_tool_use(call) for call in tool_calls)]


def _tool_use(call: ToolCall) -> dict[str, Any]:
    arguments = arguments_object(call.arguments) or {}
    return {"type": "tool_use", "id": call.call_id, "name": call.name, "input": arguments}


def _tool(tool: Tool) -> ToolParam:
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": dict(tool.parameters),
    }


@dataclass
class _Draft:
    """A tool call while its pieces arrive."""

    call_id: str
    name: str
    pieces: list[str] = field(default_factory=list)


@dataclass
class _Progress:
    """What has arrived of a turn."""

    texts: list[str] = field(default_factory=list)
    drafts: dict[int, _Draft] = field(default_factory=dict)
    n_input: int | None = None
    n_cached: int | None = None
    n_output: int | None = None
    stop_reason: str | None = None
    has_begun: bool = False
    is_whole: bool = False


def _read(stream: Iterable[RawMessageStreamEvent]) -> Reply:
    progress = _Progress()
    for event in stream:
        _take(progress, event)
    if not progress.has_begun:
        raise EndpointError(Kind.MALFORMED, "the answer is no stream of message events")
    if not progress.is_whole:
        raise EndpointError(Kind.UNAVAILABLE, "the answer broke off before it was whole")
    calls = tuple(
        ToolCall(draft.call_id, draft.name, cleaned("".join(draft.pieces)) or "{}")
        for _, draft in sorted(progress.drafts.items())
    )
    usage = TurnUsage(progress.n_input, progress.n_cached, progress.n_output)
    return Reply(cleaned("".join(progress.texts)), calls, usage, progress.stop_reason or "")


def _take(progress: _Progress, event: Any) -> None:
    """Add one event; kinds that we did not ask for, such as thinking, are passed over."""
    if event.type == "message_start":
        progress.has_begun = True
        _count_input(progress, event.message.usage)
    elif event.type == "content_block_start" and event.content_block.type == "tool_use":
        block = event.content_block
        progress.drafts[int(event.index)] = _Draft(str(block.id), cleaned(str(block.name)))
    elif event.type == "content_block_delta" and event.delta.type == "text_delta":
        progress.texts.append(event.delta.text)
    elif event.type == "content_block_delta" and event.delta.type == "input_json_delta":
        progress.drafts[int(event.index)].pieces.append(event.delta.partial_json)
    elif event.type == "message_delta":
        progress.stop_reason = event.delta.stop_reason or progress.stop_reason
        if event.usage is not None:
            progress.n_output = event.usage.output_tokens
    elif event.type == "message_stop":
        progress.is_whole = True


def _count_input(progress: _Progress, usage: Any) -> None:
    """Add up the input: this wire protocol counts what was cached apart from the rest."""
    if usage is None or usage.input_tokens is None:
        return
    progress.n_cached = usage.cache_read_input_tokens
    written = usage.cache_creation_input_tokens
    progress.n_input = usage.input_tokens + (progress.n_cached or 0) + (written or 0)
