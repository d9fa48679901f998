"""The Anthropic wire over real HTTP, asked by the official SDK."""

from typing import Any

from tests.runner.demo.exchanges import (
    LONG,
    LONG_ARGUMENTS,
    OUTPUT_TOKENS,
    anthropic_client,
    anthropic_tools,
    scripted_long_write,
    tokens,
)


def test_anthropic_whole_answer_carries_blocks_and_usage_by_the_stated_rule(serve: Any) -> None:
    answer = anthropic_client(serve(policy=scripted_long_write)).messages.create(
        model="demo-scripted",
        max_tokens=4_000,
        system="Be brief.",
        messages=[{"role": "user", "content": "Gö!"}],
        tools=anthropic_tools(),
    )
    assert answer.stop_reason == "tool_use"
    assert [block.type for block in answer.content] == ["text", "tool_use", "tool_use"]
    assert answer.content[1].input == {"path": "kernel.py", "content": LONG}
    # "Be brief." is 9 bytes, "Gö!" 4: ceil(13 / 4) = 4
    assert (answer.usage.input_tokens, answer.usage.cache_read_input_tokens) == (4, 0)
    assert answer.usage.output_tokens == OUTPUT_TOKENS


def test_anthropic_stream_rebuilds_the_same_message(serve: Any) -> None:
    client = anthropic_client(serve(policy=scripted_long_write))
    arguments: Any = {
        "model": "demo-scripted",
        "max_tokens": 4_000,
        "messages": [{"role": "user", "content": "Go"}],
        "tools": anthropic_tools(),
    }
    with client.messages.stream(**arguments) as stream:
        kinds = [event.type for event in stream]
        streamed = stream.get_final_message()
    whole = client.messages.create(**arguments)
    assert kinds[0] == "message_start"
    assert kinds[-1] == "message_stop"
    assert [block.to_dict() for block in streamed.content] == [
        block.to_dict() for block in whole.content
    ]
    assert streamed.stop_reason == "tool_use"
    assert streamed.usage.output_tokens == whole.usage.output_tokens == OUTPUT_TOKENS


def test_anthropic_raw_stream_names_the_events_of_the_wire(serve: Any) -> None:
    stream = anthropic_client(serve(policy=scripted_long_write)).messages.create(
        model="demo-scripted",
        max_tokens=4_000,
        messages=[{"role": "user", "content": "Go"}],
        tools=anthropic_tools(),
        stream=True,
    )
    kinds, pieces, usage = [], "", None
    for event in stream:
        if event.type != "content_block_delta" and kinds[-1:] != [event.type]:
            kinds.append(event.type)
        if event.type == "content_block_delta" and event.index == 1:
            assert event.delta.type == "input_json_delta"
            pieces += event.delta.partial_json
        if event.type == "message_delta":
            usage = event.usage
    block = ["content_block_start", "content_block_stop"]
    assert kinds == ["message_start", *block, *block, *block, "message_delta", "message_stop"]
    assert pieces == LONG_ARGUMENTS
    assert usage is not None
    assert usage.output_tokens == OUTPUT_TOKENS


def test_anthropic_reports_the_cached_part_apart_from_the_input(serve: Any) -> None:
    client = anthropic_client(serve(policy=scripted_long_write))
    messages: list[Any] = [{"role": "user", "content": "12345678"}]
    first = client.messages.create(model="demo-scripted", max_tokens=9, messages=messages)
    results = [
        {"type": "tool_result", "tool_use_id": block.id, "content": "done"}
        for block in first.content
        if block.type == "tool_use"
    ]
    messages += [
        {"role": "assistant", "content": [block.to_dict() for block in first.content]},
        {"role": "user", "content": results},
    ]
    second = client.messages.create(model="demo-scripted", max_tokens=9, messages=messages)
    assert second.content[0].text == "scripted: thank you"
    assert second.stop_reason == "end_turn"
    whole = tokens(
        "12345678", "scripted: two calls", "write_file", LONG_ARGUMENTS, "submit", "{}", "donedone"
    )
    # The first request held 8 bytes: 8 / 4 = 2.
    assert second.usage.cache_read_input_tokens == 2
    assert second.usage.input_tokens == whole - 2
