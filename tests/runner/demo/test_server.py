"""The demo server's doors: models, keys, refusals, injected faults, and its command line."""

import http.client
import json
import re
import subprocess
import sys
from typing import Any

import anthropic
import openai
import pytest

from runner.demo.server import Behaviour, DemoServer
from tests.runner.demo.exchanges import anthropic_client, openai_client


def test_both_wires_list_the_one_scripted_model(serve: Any) -> None:
    server = serve()
    assert [item.id for item in openai_client(server).models.list()] == ["demo-scripted"]
    assert [item.id for item in anthropic_client(server).models.list()] == ["demo-scripted"]
    assert openai_client(server).models.retrieve("demo-scripted").owned_by == "scripted"
    assert "scripted" in anthropic_client(server).models.retrieve("demo-scripted").display_name


def ask_openai(server: DemoServer, **changes: Any) -> None:
    key = changes.pop("key", "sk-any")
    openai_client(server, key).chat.completions.create(
        **{
            "model": "demo-scripted",
            "messages": [{"role": "user", "content": "Hello"}],
            **changes,
        }
    )


def ask_anthropic(server: DemoServer, **changes: Any) -> None:
    key = changes.pop("key", "sk-any")
    anthropic_client(server, key).messages.create(
        **{
            "model": "demo-scripted",
            "max_tokens": 100,
            "messages": [{"role": "user", "content": "Hello"}],
            **changes,
        }
    )


SDKS = pytest.mark.parametrize(
    ("ask", "sdk"), [(ask_openai, openai), (ask_anthropic, anthropic)], ids=["openai", "anthropic"]
)


@SDKS
def test_the_bad_key_is_refused_as_unauthenticated(serve: Any, ask: Any, sdk: Any) -> None:
    with pytest.raises(sdk.AuthenticationError, match="scripted"):
        ask(serve(), key="sk-bad")


@SDKS
def test_an_unknown_model_is_not_found(serve: Any, ask: Any, sdk: Any) -> None:
    with pytest.raises(sdk.NotFoundError, match="'other-model' does not exist"):
        ask(serve(), model="other-model")


@SDKS
def test_an_empty_conversation_is_a_bad_request(serve: Any, ask: Any, sdk: Any) -> None:
    with pytest.raises(sdk.BadRequestError, match="at least one message"):
        ask(serve(), messages=[])


def test_a_call_left_without_a_result_is_a_bad_request_on_both_wires(serve: Any) -> None:
    server = serve()
    user = {"role": "user", "content": "Hello"}
    function = {"name": "submit", "arguments": "{}"}
    call = {"id": "c1", "type": "function", "function": function}
    with pytest.raises(openai.BadRequestError, match="without a result: c1"):
        ask_openai(server, messages=[user, {"role": "assistant", "tool_calls": [call]}, user])
    use = {"type": "tool_use", "id": "c1", "name": "submit", "input": {}}
    with pytest.raises(anthropic.BadRequestError, match="without a result: c1"):
        ask_anthropic(server, messages=[user, {"role": "assistant", "content": [use]}, user])


def test_a_result_that_answers_nothing_is_a_bad_request(serve: Any) -> None:
    result = {"role": "tool", "tool_call_id": "c9", "content": "done"}
    with pytest.raises(openai.BadRequestError, match="'c9' answers no call"):
        ask_openai(serve(), messages=[{"role": "user", "content": "Hello"}, result])


@SDKS
def test_error_rate_one_fails_every_request_both_ways(serve: Any, ask: Any, sdk: Any) -> None:
    server = serve(error_rate=1.0, seed=3)
    seen = set()
    for _ in range(12):
        with pytest.raises(sdk.APIStatusError) as caught:
            ask(server)
        assert caught.value.response.headers["retry-after"] == "1"
        seen.add(caught.value.status_code)
    assert seen == {429, 500}


def test_the_same_seed_injects_the_same_faults(serve: Any) -> None:
    def draws(seed: int) -> list[int | None]:
        server = serve(error_rate=0.5, seed=seed)
        return [server.draw_fault() for _ in range(20)]

    assert draws(7) == draws(7)
    assert draws(7) != draws(8)
    assert None in draws(7)


def test_an_sdk_with_retries_gets_through_injected_faults(serve: Any) -> None:
    # Seed 1 draws 0.13 for the first request, below 0.2, and 0.26 for its repetition.
    server = serve(error_rate=0.2, seed=1)
    client = openai.OpenAI(base_url=f"{server.base_url}/v1", api_key="k", max_retries=3)
    answer = client.chat.completions.create(
        model="demo-scripted", messages=[{"role": "user", "content": "Hello"}]
    )
    assert "scripted" in (answer.choices[0].message.content or "")


def ask_plainly(
    server: DemoServer, method: str, path: str, body: bytes = b"", **headers: str
) -> tuple[int, dict[str, Any], http.client.HTTPMessage]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read()), response.headers
    finally:
        connection.close()


def test_health_needs_no_key_and_says_that_the_server_is_scripted(serve: Any) -> None:
    status, answer, headers = ask_plainly(serve(), "GET", "/healthz")
    assert status == 200
    assert answer == {"status": "ok", "server": "scripted demo model"}
    assert "scripted" in headers["Server"]


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("/v1/chat/completions", b"{", 400, "cannot be read"),
        ("/v1/chat/completions", b"[]", 400, "send an object"),
        ("/v1/chat/completions", b'{"messages": "hi"}', 400, "send a list"),
        ("/v1/chat/completions", b'{"messages": [{"role": "king"}]}', 400, "needs a role"),
        ("/v1/messages", b'{"messages": [{"role": "user", "content": "a"}]}', 400, "max_tokens"),
        ("/v1/embeddings", b"{}", 404, "nothing at POST"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_in_words(
    serve: Any, path: str, body: bytes, status: int, words: str
) -> None:
    found, answer, _ = ask_plainly(serve(), "POST", path, body, Authorization="Bearer k")
    assert found == status
    assert words in answer["error"]["message"]
    assert "scripted" in answer["error"]["message"]


def test_a_request_without_any_key_is_refused(serve: Any) -> None:
    status, answer, _ = ask_plainly(serve(), "GET", "/v1/models")
    assert status == 401
    assert "no API key" in answer["error"]["message"]


def test_an_oversized_body_is_refused_unread(serve: Any) -> None:
    headers = {"Content-Length": "999999999", "Authorization": "Bearer k"}
    status, answer, _ = ask_plainly(serve(), "POST", "/v1/messages", b"", **headers)
    assert status == 413
    assert "999999999 bytes" in answer["error"]["message"]


def test_a_hundred_requests_share_one_connection_and_leave_the_server_well(serve: Any) -> None:
    server = serve()
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    for _ in range(100):
        connection.request("GET", "/healthz")
        assert connection.getresponse().read()
    connection.close()


@pytest.mark.parametrize("behaviour", [{"error_rate": 1.5}, {"error_rate": -1}, {"delay_ms": -5}])
def test_behaviour_refuses_what_is_no_share_or_delay(behaviour: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"not a share|negative"):
        Behaviour(**behaviour)


def test_the_command_serves_says_where_and_names_a_taken_port() -> None:
    command = [sys.executable, "-m", "runner.demo", "--port"]
    with subprocess.Popen([*command, "0"], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            announced = process.stdout.readline()
            found = re.search(r"scripted demo model at http://127\.0\.0\.1:(\d+)", announced)
            assert found, announced
            connection = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=10)
            connection.request("GET", "/healthz")
            assert connection.getresponse().status == 200
            second = subprocess.run(
                [*command, found[1]], capture_output=True, text=True, timeout=60, check=False
            )
        finally:
            process.terminate()
    assert second.returncode == 2
    assert f"scripted demo server cannot start on 127.0.0.1:{found[1]}" in second.stderr
