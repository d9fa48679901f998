"""The HTTP server: routes, keys, injected errors; a wire reads and writes, the policy answers."""

import json
import logging
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import ModuleType
from typing import Any

from runner.demo import anthropic_wire, openai_wire, policy
from runner.demo.conversation import ChatRequest, Conversation, JsonObject, Move

MODELS = ("demo-scripted",)
REFUSED_KEY = "sk-bad"
RETRY_AFTER_SEC = 1

_BODY_LIMIT_BYTES = 16_000_000
_READ_TIMEOUT_SEC = 60
_WIRES: dict[str, ModuleType] = {wire.PATH: wire for wire in (openai_wire, anthropic_wire)}

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Behaviour:
    """How the server treats requests, apart from the policy.

    `error_rate` is the share of chat requests answered with a 500 or a 429 before anything else
    happens, drawn from a generator seeded with `seed`; `delay_ms` is waited before each answer.
    """

    error_rate: float = 0.0
    seed: int = 0
    delay_ms: float = 0.0
    policy: Callable[[Conversation], Move] = field(default=policy.next_move)

    def __post_init__(self) -> None:
        if not 0 <= self.error_rate <= 1:
            raise ValueError(f"error rate {self.error_rate} is not a share between 0 and 1")
        if self.delay_ms < 0:
            raise ValueError(f"a delay of {self.delay_ms} ms is negative")


class RefusalError(Exception):
    """A request that gets an error answer: the HTTP status, and why in words."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class DemoServer(ThreadingHTTPServer):
    """A scripted model behind both wires; port 0 takes a free one."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, host: str, port: int, behaviour: Behaviour) -> None:
        super().__init__((host, port), _Handler)
        self.behaviour = behaviour
        self._chance = random.Random(behaviour.seed)  # noqa: S311 - repeatable faults, no secret
        self._chance_lock = threading.Lock()

    @property
    def base_url(self) -> str:
        """The address without a path; the OpenAI SDK wants `/v1` behind it."""
        return f"http://{self.server_address[0]!s}:{self.server_port}"

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        """Log what went wrong in one connection; a client that hangs up is nothing to report."""
        if isinstance(sys.exception(), ConnectionError):
            logger.debug("%s hung up", client_address)
        else:
            logger.exception("scripted demo server: request from %s failed", client_address)

    def draw_fault(self) -> int | None:
        """Return the status of the error to inject into the next request, None for none."""
        with self._chance_lock:
            if self._chance.random() >= self.behaviour.error_rate:
                return None
            return self._chance.choice((500, 429))


class _Handler(BaseHTTPRequestHandler):
    """One connection. Bodies are read whole before anything is answered, so it can be reused."""

    server: DemoServer
    protocol_version = "HTTP/1.1"
    server_version = "scripted-demo/1"
    sys_version = ""
    timeout = _READ_TIMEOUT_SEC
    disable_nagle_algorithm = True
    wbufsize = -1

    def do_GET(self) -> None:
        """Answer liveness and the model list."""
        if self.path == "/healthz":
            self._send_json(200, {"status": "ok", "server": "scripted demo model"})
            return
        self._answer_or_refuse(self._models)

    def do_POST(self) -> None:
        """Answer one chat request."""
        self._answer_or_refuse(self._chat)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Log one request line where the process logs everything else."""
        logger.debug("%s %s", self.address_string(), format % args)

    @property
    def _wire(self) -> ModuleType:
        """The wire that the client speaks; only Anthropic's SDK names a version of its API."""
        if self.path in _WIRES:
            return _WIRES[self.path]
        return anthropic_wire if self.headers.get("anthropic-version") else openai_wire

    def _answer_or_refuse(self, answer: Callable[[bytes], None]) -> None:
        try:
            answer(self._read_body())
        except RefusalError as refusal:
            self._send_error(refusal.status, str(refusal))
        except OSError:
            raise  # the connection broke: there is nobody to answer
        except Exception:  # a fault of ours must not look like a dropped connection
            logger.exception("scripted demo server: %s failed", self.path)
            self._send_error(500, "an internal fault; the server's log has it")

    def _models(self, _body: bytes) -> None:
        path = self.path.partition("?")[0]
        self._check_key()
        if path == "/v1/models":
            self._send_json(200, self._wire.models(MODELS))
        elif path.startswith("/v1/models/"):
            model_id = path.removeprefix("/v1/models/")
            _check_model(model_id)
            self._send_json(200, self._wire.model(model_id))
        else:
            raise RefusalError(404, f"there is nothing at GET {path}")

    def _chat(self, body: bytes) -> None:
        wire = _WIRES.get(self.path.partition("?")[0])
        if wire is None:
            raise RefusalError(404, f"there is nothing at POST {self.path}")
        status = self.server.draw_fault()
        if status is not None:
            raise RefusalError(status, f"injected fault {status}: ask again later")
        self._check_key()
        request = _read_request(wire, body)
        time.sleep(self.server.behaviour.delay_ms / 1000)
        move = self.server.behaviour.policy(request.conversation)
        if request.streams:
            self._send_events(wire.events(request, move))
        else:
            self._send_json(200, wire.answer(request, move))

    def _check_key(self) -> None:
        """Take the key from either SDK's header; any key but one is good."""
        bearer = self.headers.get("Authorization", "").removeprefix("Bearer ")
        key = (self.headers.get("x-api-key") or bearer).strip()
        if not key:
            raise RefusalError(401, "no API key: send any key that is not empty")
        if key == REFUSED_KEY:
            raise RefusalError(401, f"incorrect API key {REFUSED_KEY}: it is always refused")

    def _read_body(self) -> bytes:
        length = self.headers.get("Content-Length", "0")
        if not length.isdecimal() or self.headers.get("Transfer-Encoding"):
            self.close_connection = True
            raise RefusalError(400, f"Content-Length {length!r}: send the body's size in bytes")
        if int(length) > _BODY_LIMIT_BYTES:
            self.close_connection = True
            raise RefusalError(413, f"{length} bytes: a request holds {_BODY_LIMIT_BYTES} at most")
        return self.rfile.read(int(length))

    def _send_error(self, status: int, message: str) -> None:
        self._send_json(status, self._wire.error(status, f"{message} (scripted demo server)"))

    def _send_json(self, status: int, payload: JsonObject) -> None:
        raw = json.dumps(payload).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw)))
        if status in (429, 500):
            self.send_header("Retry-After", str(RETRY_AFTER_SEC))
        self.end_headers()
        self.wfile.write(raw)
        self.wfile.flush()

    def _send_events(self, events: Iterator[str]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events:
            raw = event.encode()
            self.wfile.write(b"%x\r\n%b\r\n" % (len(raw), raw))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()


def _read_request(wire: ModuleType, body: bytes) -> ChatRequest:
    try:
        payload = json.loads(body)
        if not isinstance(payload, dict):
            raise ValueError(f"the body is a JSON {type(payload).__name__}; send an object")
        request: ChatRequest = wire.read(payload)
    except (ValueError, RecursionError) as error:
        raise RefusalError(400, f"the request cannot be read: {error}") from error
    _check_model(request.model)
    return request


def _check_model(model_id: str) -> None:
    if model_id not in MODELS:
        known = ", ".join(MODELS)
        raise RefusalError(404, f"the model {model_id!r} does not exist; there is: {known}")
