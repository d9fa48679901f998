"""Clients of the official SDKs for a demo server, and a scripted reply of known size."""

import json
import math
from typing import Any

import anthropic
import openai

from runner.demo.conversation import Call, Conversation, Move
from runner.demo.server import DemoServer

TOOL_NAMES = ("run_shell", "write_file", "submit", "finish")
LONG = 'kernel text with ü and "quotes"\n' * 60


def scripted_long_write(conversation: Conversation) -> Move:
    """Two calls, the first too long for one streamed piece; once answered, a short text."""
    if conversation.steps:
        return Move("scripted: thank you")
    return Move(
        "scripted: two calls",
        (Call("write_file", {"path": "kernel.py", "content": LONG}), Call("submit")),
    )


def openai_client(server: DemoServer, key: str = "sk-any") -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{server.base_url}/v1", api_key=key, max_retries=0)


def anthropic_client(server: DemoServer, key: str = "sk-any") -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=server.base_url, api_key=key, max_retries=0)


def openai_tools() -> list[Any]:
    schema = {"type": "object", "properties": {}}
    return [
        {"type": "function", "function": {"name": name, "parameters": schema}}
        for name in TOOL_NAMES
    ]


def anthropic_tools() -> list[Any]:
    schema = {"type": "object", "properties": {}}
    return [{"name": name, "input_schema": schema} for name in TOOL_NAMES]


def tokens(*texts: str) -> int:
    return math.ceil(sum(len(text.encode()) for text in texts) / 4)


def compact(arguments: dict[str, Any]) -> str:
    return json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))


LONG_ARGUMENTS = compact({"path": "kernel.py", "content": LONG})
OUTPUT_TOKENS = tokens("scripted: two calls", "write_file", LONG_ARGUMENTS, "submit", "{}")
