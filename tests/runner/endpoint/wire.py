"""A local HTTP server that gives scripted answers in both wire protocols, and keeps what it got."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[[BaseHTTPRequestHandler], None]


@dataclass(frozen=True)
class Request:
    path: str
    headers: dict[str, str]
    body: dict[str, Any]


@dataclass
class Wire:
    """The server's address, the answers it will give in turn, and the requests it got.

    The last answer is given again and again.
    """

    port: int = 0
    answers: list[Answer] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def serving(*answers: Answer) -> Iterator[Wire]:
    wire = Wire(answers=list(answers))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            wire.requests.append(Request(self.path, headers, json.loads(body or b"{}")))
            answer = wire.answers.pop(0) if len(wire.answers) > 1 else wire.answers[0]
            answer(self)

        def log_message(self, *_: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    wire.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield wire
    finally:
        wire.over.set()
        server.shutdown()
        server.server_close()
        thread.join()


def send(
    handler: BaseHTTPRequestHandler,
    body: bytes,
    *,
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> None:
    handler.send_response(status)
    for name, value in {"content-type": "text/event-stream", **(headers or {})}.items():
        handler.send_header(name, value)
    handler.send_header("content-length", str(len(body)))
    handler.end_headers()
    try:
        handler.wfile.write(body)
    except OSError:
        handler.close_connection = True


def status(code: int, *, headers: dict[str, str] | None = None, body: bytes = b"{}") -> Answer:
    sent = {"content-type": "application/json", **(headers or {})}
    return lambda handler: send(handler, body, status=code, headers=sent)


def raw(body: bytes, *, headers: dict[str, str] | None = None) -> Answer:
    return lambda handler: send(handler, body, headers=headers)


def events(*payloads: Any, named: bool = False) -> bytes:
    lines = []
    for payload in payloads:
        text = payload if isinstance(payload, str) else json.dumps(payload)
        name = f"event: {payload['type']}\n" if named else ""
        lines.append(f"{name}data: {text}\n\n")
    return "".join(lines).encode()


def openai_events(
    text: str = "",
    calls: tuple[tuple[str, str, str], ...] = (),
    usage: dict[str, Any] | None = None,
    finish: str | None = "stop",
) -> bytes:
    def chunk(**fields: Any) -> dict[str, Any]:
        base = {"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m"}
        return {**base, "choices": [], **fields}

    def choice(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        return chunk(choices=[{"index": 0, "delta": delta, "finish_reason": reason}])

    payloads: list[Any] = [choice({"role": "assistant", "content": ""})]
    payloads += [choice({"content": letter}) for letter in text]
    for index, (call_id, name, arguments) in enumerate(calls):
        half = len(arguments) // 2
        first = {"name": name, "arguments": arguments[:half]}
        head = {"index": index, "id": call_id, "type": "function", "function": first}
        tail = {"index": index, "function": {"arguments": arguments[half:]}}
        payloads += [choice({"tool_calls": [head]}), choice({"tool_calls": [tail]})]
    payloads.append(choice({}, finish))
    if usage is not None:
        payloads.append(chunk(usage=usage))
    return events(*payloads, "[DONE]")


def anthropic_events(
    text: str = "",
    calls: tuple[tuple[str, str, str], ...] = (),
    usage: dict[str, Any] | None = None,
    finish: str = "end_turn",
    n_output: int = 7,
) -> bytes:
    message = {"id": "m", "type": "message", "role": "assistant", "content": [], "model": "m"}
    started = {**message, "stop_reason": None, "usage": usage or {"input_tokens": 1}}
    payloads: list[dict[str, Any]] = [{"type": "message_start", "message": started}]
    block: dict[str, Any] = {"type": "text", "text": ""}
    payloads.append({"type": "content_block_start", "index": 0, "content_block": block})
    for letter in text:
        delta: dict[str, Any] = {"type": "text_delta", "text": letter}
        payloads.append({"type": "content_block_delta", "index": 0, "delta": delta})
    payloads += [{"type": "content_block_stop", "index": 0}, {"type": "ping"}]
    for index, (call_id, name, arguments) in enumerate(calls, start=1):
        block = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
        payloads.append({"type": "content_block_start", "index": index, "content_block": block})
        half = len(arguments) // 2
        for piece in (arguments[:half], arguments[half:]):
            delta = {"type": "input_json_delta", "partial_json": piece}
            payloads.append({"type": "content_block_delta", "index": index, "delta": delta})
        payloads.append({"type": "content_block_stop", "index": index})
    delta = {"stop_reason": finish, "stop_sequence": None}
    payloads.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": n_output}})
    payloads.append({"type": "message_stop"})
    return events(*payloads, named=True)
