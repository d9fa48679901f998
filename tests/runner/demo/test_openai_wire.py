"""The OpenAI wire over real HTTP, asked by the official SDK."""

import json
from typing import Any

from tests.runner.demo.exchanges import (
    LONG,
    LONG_ARGUMENTS,
    OUTPUT_TOKENS,
    openai_client,
    openai_tools,
    scripted_long_write,
    tokens,
)


def test_openai_answers_a_prompt_without_tools_in_words(serve: Any) -> None:
    answer = openai_client(serve()).chat.completions.create(
        model="demo-scripted", messages=[{"role": "user", "content": "Are you there?"}]
    )
    assert answer.choices[0].finish_reason == "stop"
    assert "scripted" in (answer.choices[0].message.content or "")
    assert not answer.choices[0].message.tool_calls


def test_openai_whole_answer_carries_calls_and_usage_by_the_stated_rule(serve: Any) -> None:
    answer = openai_client(serve(policy=scripted_long_write)).chat.completions.create(
        model="demo-scripted",
        messages=[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Gö!"}],
        tools=openai_tools(),
    )
    calls = answer.choices[0].message.tool_calls or []
    assert answer.choices[0].finish_reason == "tool_calls"
    assert [call.function.name for call in calls] == ["write_file", "submit"]
    assert json.loads(calls[0].function.arguments)["content"] == LONG
    assert answer.usage is not None
    # "Be brief." is 9 bytes, "Gö!" 4: ceil(13 / 4) = 4
    assert answer.usage.prompt_tokens == 4
    assert answer.usage.completion_tokens == OUTPUT_TOKENS
    assert answer.usage.total_tokens == 4 + OUTPUT_TOKENS
    assert answer.usage.prompt_tokens_details.cached_tokens == 0


def test_openai_stream_rebuilds_the_same_calls_and_ends_with_usage(serve: Any) -> None:
    stream = openai_client(serve(policy=scripted_long_write)).chat.completions.create(
        model="demo-scripted",
        messages=[{"role": "user", "content": "Go"}],
        tools=openai_tools(),
        stream=True,
        stream_options={"include_usage": True},
    )
    text, calls, reasons, usages, n_pieces = "", {}, [], [], 0
    for chunk in stream:
        if chunk.usage:
            usages.append(chunk.usage)
        for choice in chunk.choices:
            text += choice.delta.content or ""
            reasons += [choice.finish_reason] if choice.finish_reason else []
            for delta in choice.delta.tool_calls or []:
                call = calls.setdefault(delta.index, {"id": delta.id, "name": "", "arguments": ""})
                call["name"] += delta.function.name or ""
                call["arguments"] += delta.function.arguments or ""
                n_pieces += 1
    assert text == "scripted: two calls"
    assert reasons == ["tool_calls"]
    assert [call["name"] for call in calls.values()] == ["write_file", "submit"]
    assert calls[0]["arguments"] == LONG_ARGUMENTS
    assert calls[0]["id"] != calls[1]["id"]
    assert n_pieces > 4
    assert [usage.completion_tokens for usage in usages] == [OUTPUT_TOKENS]


def test_openai_stream_sends_no_usage_unless_asked(serve: Any) -> None:
    stream = openai_client(serve()).chat.completions.create(
        model="demo-scripted", messages=[{"role": "user", "content": "Hello"}], stream=True
    )
    assert all(chunk.usage is None for chunk in stream)


def test_openai_counts_what_the_previous_request_held_as_cached(serve: Any) -> None:
    client = openai_client(serve(policy=scripted_long_write))
    messages: list[Any] = [{"role": "user", "content": "12345678"}]
    first = client.chat.completions.create(
        model="demo-scripted", messages=messages, tools=openai_tools()
    )
    message = first.choices[0].message
    messages.append(message.model_dump(exclude_none=True))
    messages += [
        {"role": "tool", "tool_call_id": call.id, "content": "done"}
        for call in message.tool_calls or []
    ]
    second = client.chat.completions.create(model="demo-scripted", messages=messages)
    assert second.choices[0].message.content == "scripted: thank you"
    assert second.usage is not None
    # The first request held 8 bytes: 8 / 4 = 2. The second adds the reply and twice "done".
    assert second.usage.prompt_tokens_details.cached_tokens == 2
    assert second.usage.prompt_tokens == tokens(
        "12345678", "scripted: two calls", "write_file", LONG_ARGUMENTS, "submit", "{}", "donedone"
    )
