"""What an attempt hears when an endpoint fails: a kind, a sentence, and only sensible repeats."""

import gzip
import socket
import time
from http.server import BaseHTTPRequestHandler

import pytest

from runner.endpoint import EndpointError, Kind, User
from tests.runner.endpoint.conftest import Connector
from tests.runner.endpoint.wire import (
    Answer,
    Wire,
    anthropic_events,
    events,
    openai_events,
    raw,
    send,
    serving,
    status,
)

SECRET_BODY = b'{"error": {"message": "internal host db.corp says sk-secret"}}'


def ok(provider: str) -> Answer:
    return raw(openai_events("ok") if provider == "openai" else anthropic_events("ok"))


def failure(reach: Connector, wire: Wire, **options: float) -> EndpointError:
    with pytest.raises(EndpointError) as caught:
        reach(wire, **options).chat([User("hi")], [])
    return caught.value


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (400, Kind.REFUSED),
        (401, Kind.UNAUTHORISED),
        (403, Kind.UNAUTHORISED),
        (404, Kind.NOT_FOUND),
        (413, Kind.REFUSED),
        (422, Kind.REFUSED),
    ],
)
def test_a_refusal_is_named_and_never_repeated(
    reach: Connector, pauses: list[float], code: int, kind: Kind
) -> None:
    # This header makes the SDKs' own repeats obey the server.
    answer = status(code, headers={"x-should-retry": "true"}, body=SECRET_BODY)
    with serving(answer) as wire:
        error = failure(reach, wire)
    assert error.kind is kind
    assert str(code) in error.sentence
    assert "sk-secret" not in error.sentence
    assert "corp" not in error.sentence
    assert (len(wire.requests), pauses) == (1, [])


def test_a_rate_limit_is_waited_out_as_long_as_the_endpoint_asks(
    provider: str, reach: Connector, pauses: list[float]
) -> None:
    with serving(status(429, headers={"retry-after": "17"}), ok(provider)) as wire:
        assert reach(wire).chat([User("hi")], []).text == "ok"
    assert pauses == [17.0]


def test_a_pause_of_weeks_is_cut_to_the_longest_we_grant(
    provider: str, reach: Connector, pauses: list[float]
) -> None:
    with serving(status(503, headers={"retry-after": "9999999"}), ok(provider)) as wire:
        reach(wire, turn_limit_sec=600.0).chat([User("hi")], [])
    assert pauses == [60.0]


@pytest.mark.parametrize("code", [408, 409, 429, 500, 502, 503, 529])
def test_a_provider_that_stays_down_gets_three_tries(
    reach: Connector, pauses: list[float], code: int
) -> None:
    with serving(status(code, body=SECRET_BODY)) as wire:
        error = failure(reach, wire)
    assert error.kind is Kind.UNAVAILABLE
    assert error.kind.is_transient
    assert len(wire.requests) == 3
    # 8 s and then 16 s, each less by up to half
    assert len(pauses) == 2
    assert 4 <= pauses[0] <= 8 <= pauses[1] <= 16


def test_a_pause_that_outlasts_the_turn_is_not_begun(reach: Connector, pauses: list[float]) -> None:
    with serving(status(429, headers={"retry-after": "50"})) as wire:
        error = failure(reach, wire, turn_limit_sec=20.0)
    assert (error.kind, len(wire.requests), pauses) == (Kind.UNAVAILABLE, 1, [])


def test_an_address_where_nothing_listens_is_unavailable(reach: Connector) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    error = failure(reach, Wire(port=port))
    assert error.kind is Kind.UNAVAILABLE
    assert "nothing accepts connections" in error.sentence


def test_an_endpoint_that_stays_silent_times_out(reach: Connector) -> None:
    with serving() as wire:
        wire.answers.append(lambda _: bool(wire.over.wait(30)))  # type: ignore[arg-type, return-value]
        error = failure(reach, wire, turn_limit_sec=0.3)
    assert error.kind is Kind.TIMED_OUT


def test_an_endpoint_that_drips_for_ever_times_out(reach: Connector) -> None:
    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.end_headers()
        handler.close_connection = True
        try:
            while not wire.over.is_set():
                handler.wfile.write(b": still here\n\n")
                time.sleep(0.02)
        except OSError:
            return

    with serving(drip) as wire:
        error = failure(reach, wire, turn_limit_sec=0.3)
    assert error.kind is Kind.TIMED_OUT


@pytest.mark.parametrize(
    "body",
    [
        events("{not json"),
        events('{"type": 3}', named=False),
        b"data: [1, 2, 3]\n\n",
        b'{"id": "x", "choices": [{"message": {"content": "hi"}}]}',
        b"<html>welcome</html>",
        b"",
        b"\xff\xfe\x00 data",
    ],
)
def test_an_answer_of_another_form_is_malformed(reach: Connector, body: bytes) -> None:
    named = body.replace(b"data:", b"event: message_start\ndata:")
    with serving(raw(named)) as wire:
        error = failure(reach, wire)
    assert error.kind is Kind.MALFORMED
    assert "welcome" not in error.sentence


@pytest.mark.parametrize("code", [200, 500])
def test_ten_megabytes_are_not_read(reach: Connector, code: int) -> None:
    body = b"data: " + b"x" * 10_000_000 + b"\n\n"
    with serving(lambda handler: send(handler, body, status=code)) as wire:
        error = failure(reach, wire)
    assert error.kind is Kind.TOO_LARGE
    assert len(wire.requests) == 1


def test_a_compressed_answer_is_refused_before_it_swells(reach: Connector) -> None:
    bomb = gzip.compress(b"data: " + b"0" * 50_000_000)
    with serving(raw(bomb, headers={"content-encoding": "gzip"})) as wire:
        error = failure(reach, wire)
    assert error.kind is Kind.MALFORMED
    assert "compressed" in error.sentence


def test_an_answer_that_breaks_off_is_asked_for_again(
    provider: str, reach: Connector, pauses: list[float]
) -> None:
    def cut(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.send_header("content-length", "5000")
        handler.end_headers()
        handler.wfile.write(openai_events("half")[:200])
        handler.close_connection = True

    with serving(cut, ok(provider)) as wire:
        assert reach(wire).chat([User("hi")], []).text == "ok"
    assert len(pauses) == 1


@pytest.mark.parametrize("provider", ["openai"])
def test_a_stream_that_ends_without_a_finish_is_not_taken_for_an_answer(
    reach: Connector, provider: str
) -> None:
    with serving(raw(openai_events("half", finish=None))) as wire:
        assert failure(reach, wire).kind is Kind.UNAVAILABLE


def test_an_error_inside_the_stream_is_a_fault_of_the_provider(
    provider: str, reach: Connector
) -> None:
    fault = {"type": "error", "error": {"type": "overloaded_error", "message": "sk-secret"}}
    with serving(raw(events(fault, named=True))) as wire:
        error = failure(reach, wire)
    assert error.kind is Kind.UNAVAILABLE
    assert "sk-secret" not in error.sentence


def test_a_time_limit_given_for_one_turn_holds(reach: Connector) -> None:
    with serving() as wire:
        wire.answers.append(lambda _: bool(wire.over.wait(30)))  # type: ignore[arg-type, return-value]
        with pytest.raises(EndpointError) as caught:
            reach(wire).chat([User("hi")], [], timeout_sec=0.2)
    assert caught.value.kind is Kind.TIMED_OUT
