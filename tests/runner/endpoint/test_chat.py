"""What crosses the wire in each protocol, and what comes back as a reply."""

from typing import Any

import pytest

from runner.endpoint import (
    Assistant,
    ChatMessage,
    System,
    Tool,
    ToolCall,
    ToolResult,
    TurnUsage,
    User,
    arguments_object,
)
from tests.runner.endpoint.conftest import Connector
from tests.runner.endpoint.wire import anthropic_events, openai_events, raw, serving

SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}}
TOOL = Tool("run_shell", "Run a command.", SCHEMA)
CALLS = (("id1", "run_shell", '{"command": "ls"}'), ("id2", "finish", "{}"))


def answer(provider: str, text: str = "", calls: tuple[tuple[str, str, str], ...] = ()) -> bytes:
    if provider == "openai":
        usage = {
            "prompt_tokens": 100,
            "completion_tokens": 7,
            "total_tokens": 107,
            "prompt_tokens_details": {"cached_tokens": 60},
        }
        return openai_events(text, calls, usage)
    # 30 read anew + 60 from the cache + 10 written to it = 100
    counts = {"input_tokens": 30, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 10}
    return anthropic_events(text, calls, counts)


def test_a_streamed_answer_is_put_together_with_its_tool_calls_and_usage(
    provider: str, reach: Connector
) -> None:
    with serving(raw(answer(provider, "Hello ∑", CALLS))) as wire:
        reply = reach(wire).chat([User("hi")], [TOOL])
    assert reply.text == "Hello ∑"
    assert reply.tool_calls == tuple(ToolCall(*call) for call in CALLS)
    assert reply.usage == TurnUsage(n_input=100, n_cached=60, n_output=7)
    assert reply.stop_reason in ("stop", "end_turn")


HISTORY: list[ChatMessage] = [
    System("be brief"),
    User("begin"),
    Assistant("looking", (ToolCall("id1", "run_shell", '{"command": "ls"}'),)),
    ToolResult("id1", "TASK.md"),
    User("half the time is over"),
]


def sent(provider: str, reach: Connector, history: list[ChatMessage]) -> dict[str, Any]:
    with serving(raw(answer(provider, "ok"))) as wire:
        reach(wire).chat(history, [TOOL])
    return wire.requests[0].body


@pytest.mark.parametrize("provider", ["openai"])
def test_openai_gets_the_history_in_its_form_and_is_asked_for_usage(
    provider: str, reach: Connector
) -> None:
    body = sent(provider, reach, HISTORY)
    function = {"name": "run_shell", "arguments": '{"command": "ls"}'}
    assert body["messages"] == [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "begin"},
        {
            "role": "assistant",
            "content": "looking",
            "tool_calls": [{"id": "id1", "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": "id1", "content": "TASK.md"},
        {"role": "user", "content": "half the time is over"},
    ]
    assert body["tools"][0]["function"]["parameters"] == SCHEMA
    assert body["model"] == "some-model"
    assert (body["stream"], body["stream_options"]) == (True, {"include_usage": True})


@pytest.mark.parametrize("provider", ["anthropic"])
def test_anthropic_gets_alternating_turns_with_tool_results_first(
    provider: str, reach: Connector
) -> None:
    body = sent(provider, reach, HISTORY)
    assert body["system"] == "be brief"
    assert [turn["role"] for turn in body["messages"]] == ["user", "assistant", "user"]
    use = {"type": "tool_use", "id": "id1", "name": "run_shell", "input": {"command": "ls"}}
    assert body["messages"][1]["content"] == [{"type": "text", "text": "looking"}, use]
    result, warning = body["messages"][2]["content"]
    assert result == {"type": "tool_result", "tool_use_id": "id1", "content": "TASK.md"}
    assert warning["text"] == "half the time is over"
    assert body["tools"][0]["input_schema"] == SCHEMA
    assert body["stream"] is True


def test_history_with_broken_arguments_and_an_empty_turn_is_still_valid(
    provider: str, reach: Connector
) -> None:
    history = [
        User("begin"),
        Assistant("", (ToolCall("id1", "run_shell", '{"command": '),)),
        ToolResult("id1", "these arguments are no JSON"),
        Assistant(""),
        User("call a tool"),
    ]
    turns = sent(provider, reach, history)["messages"]
    if provider == "openai":
        assert turns[1]["tool_calls"][0]["function"]["arguments"] == "{}"
    else:
        assert turns[1]["content"][0]["input"] == {}
        assert turns[3]["content"][0]["text"].strip()


def test_the_key_and_nothing_of_the_environment_goes_to_the_endpoint(
    provider: str, reach: Connector, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = "operators-own"
    for name in (
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "OPENAI_API_KEY",
        "OPENAI_ORG_ID",
        "OPENAI_PROJECT_ID",
    ):
        monkeypatch.setenv(name, ours)
    for name in ("ANTHROPIC_CUSTOM_HEADERS", "OPENAI_CUSTOM_HEADERS"):
        monkeypatch.setenv(name, f"x-mine: {ours}")
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with serving(raw(answer(provider, "ok"))) as wire:
        reach(wire).chat([User("hi")], [])
    headers = wire.requests[0].headers
    assert headers["authorization"] == "Bearer sk-secret"
    assert ours not in str(headers)
    assert headers["accept-encoding"] == "identity"


def test_an_endpoint_without_a_key_is_asked_all_the_same(provider: str, reach: Connector) -> None:
    with serving(raw(answer(provider, "ok"))) as wire:
        assert reach(wire, key="").chat([User("hi")], []).text == "ok"


def test_text_that_no_store_accepts_is_replaced(provider: str, reach: Connector) -> None:
    with serving(raw(answer(provider, "a\x00b\ud800c"))) as wire:
        reply = reach(wire).chat([User("hi")], [])
    assert reply.text == "a\N{REPLACEMENT CHARACTER}b?c"


@pytest.mark.parametrize("provider", ["openai"])
def test_usage_that_is_not_reported_is_unknown_not_zero(provider: str, reach: Connector) -> None:
    with serving(raw(openai_events("ok"))) as wire:
        assert reach(wire).chat([User("hi")], []).usage == TurnUsage(None, None, None)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        ("", {}),
        ("  ", {}),
        ("[1]", None),
        ('"a"', None),
        ('{"a": ', None),
        ("[" * 100_000, None),
    ],
)
def test_arguments_are_an_object_or_nothing(text: str, value: object) -> None:
    assert arguments_object(text) == value
