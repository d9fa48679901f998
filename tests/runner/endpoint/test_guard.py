"""Where an endpoint may be: on the public internet, or where the operator allows it."""

import ipaddress
from typing import Any

import httpcore2
import pytest

from runner.endpoint import EndpointError, Kind, Patience, User, connect, parse_networks
from runner.endpoint.addresses import check_address
from runner.endpoint.guard import Policy
from runner.messages import Endpoint
from tests.runner.endpoint.conftest import LOOPBACK, Connector
from tests.runner.endpoint.wire import openai_events, raw, serving, status

PUBLIC = "93.184.215.14"
IMPATIENT = Patience(n_tries=1, turn_limit_sec=10.0)


def blocked(base_url: str, policy: Policy | None = None, provider: str = "openai") -> EndpointError:
    endpoint = Endpoint(provider=provider, base_url=base_url, model_id="m")
    with pytest.raises(EndpointError) as caught:
        connect(endpoint, "sk", policy=policy, patience=IMPATIENT).chat([User("hi")], [])
    return caught.value


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "0.0.0.0",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "100.64.0.1",
        "169.254.169.254",
        "168.63.129.16",
        "192.0.0.192",
        "100.100.100.200",
        "224.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::ffff:127.0.0.1",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b:1::5db8:d70e",
        "2002:7f00:1::",
        "2001:0:7f00:1:0:0:80ff:fffe",
        "fe80::1%eth0",
        "fc00::1",
        "fd00:ec2::254",
        "ff02::1",
    ],
)
def test_no_address_inside_is_reached_in_any_spelling(address: str) -> None:
    with pytest.raises(EndpointError) as caught:
        check_address(address, ())
    assert caught.value.kind is Kind.BLOCKED
    assert address not in caught.value.sentence


@pytest.mark.parametrize("address", [PUBLIC, "2606:4700::1111", "64:ff9b::5db8:d70e"])
def test_a_public_address_passes(address: str) -> None:
    assert check_address(address, ()) == address


def test_the_operator_can_allow_a_private_network() -> None:
    networks = parse_networks("10.0.0.0/8, ::1/128,")
    assert check_address("10.1.2.3", networks) == "10.1.2.3"
    assert check_address("::1", networks) == "::1"
    with pytest.raises(EndpointError):
        check_address("192.168.1.1", networks)


def test_a_list_of_networks_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(ValueError, match=r"10\.0\.0\.300"):
        parse_networks("10.0.0.300/8")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.1", "2130706433", "0x7f.1"])
def test_a_server_on_this_machine_gets_no_request_unless_allowed(host: str, provider: str) -> None:
    with serving(status(500)) as wire:
        error = blocked(f"http://{host}:{wire.port}/v1", provider=provider)
    assert error.kind is Kind.BLOCKED
    assert wire.requests == []


def test_one_private_answer_among_public_ones_condemns_the_name() -> None:
    policy = Policy(resolver=lambda _host, _port: [PUBLIC, "10.0.0.1"])
    assert blocked("https://mixed.example/v1", policy).kind is Kind.BLOCKED


def test_a_name_that_changes_its_answer_after_the_check_gains_nothing() -> None:
    answers = iter([["127.0.0.1"], ["10.0.0.1"]])
    asked: list[str] = []

    def rebinding(host: str, _port: int) -> list[str]:
        asked.append(host)
        return next(answers)

    with serving(raw(openai_events("ok"))) as wire:
        # The name resolves nowhere but here, so only the checked answer can have been used.
        endpoint = Endpoint("openai", f"http://rebind.invalid:{wire.port}/v1", "m")
        policy = Policy(allow_networks=LOOPBACK, resolver=rebinding)
        model = connect(endpoint, "sk", policy=policy, patience=IMPATIENT)
        assert model.chat([User("hi")], []).text == "ok"
        with pytest.raises(EndpointError) as caught:
            model.chat([User("hi")], [])
    assert caught.value.kind is Kind.BLOCKED
    assert asked == ["rebind.invalid", "rebind.invalid"]
    assert wire.requests[0].headers["host"] == f"rebind.invalid:{wire.port}"


def test_every_new_connection_goes_through_the_check() -> None:
    """Fails if the SDK or the HTTP library stops calling the hook: nothing else reports blocks."""
    with serving(status(500)) as wire:
        seen: list[str] = []

        def noting(host: str, _port: int) -> list[str]:
            seen.append(host)
            return ["192.168.7.7"]

        for provider in ("openai", "anthropic"):
            error = blocked(
                f"https://vendor.example:{wire.port}", Policy(resolver=noting), provider
            )
            assert error.kind is Kind.BLOCKED
    assert seen == ["vendor.example", "vendor.example"]


def test_the_next_address_is_tried_when_one_version_of_ip_has_no_route() -> None:
    networks = (*LOOPBACK, ipaddress.ip_network("::1/128"))
    policy = Policy(allow_networks=networks, resolver=lambda _host, _port: ["::1", "127.0.0.1"])
    with serving(raw(openai_events("ok"))) as wire:
        endpoint = Endpoint("openai", f"http://both.example:{wire.port}/v1", "m")
        model = connect(endpoint, "sk", policy=policy, patience=IMPATIENT)
        assert model.chat([User("hi")], []).text == "ok"


def test_a_public_address_needs_https_on_its_usual_port() -> None:
    policy = Policy(resolver=lambda _host, _port: [PUBLIC])
    assert "https" in blocked("http://vendor.example/v1", policy).sentence
    assert "port 443" in blocked("https://vendor.example:8443/v1", policy).sentence


@pytest.mark.parametrize(
    "base_url",
    ["ftp://vendor.example", "file:///etc/passwd", "https://", "vendor.example/v1", "http://[::1"],
)
def test_what_is_no_web_address_is_blocked(base_url: str) -> None:
    assert blocked(base_url).kind is Kind.BLOCKED


def test_a_name_and_password_in_the_address_are_refused() -> None:
    error = blocked("https://me:pass@vendor.example/v1")
    assert error.kind is Kind.BLOCKED
    assert "pass@" not in error.sentence


def test_an_unknown_provider_is_named() -> None:
    assert "'smoke-signals'" in blocked(f"https://{PUBLIC}", provider="smoke-signals").sentence


def test_a_name_that_does_not_resolve_is_unavailable() -> None:
    def nothing(_host: str, _port: int) -> list[str]:
        raise OSError("no such name")

    error = blocked("https://nowhere.example/v1", Policy(resolver=nothing))
    assert error.kind is Kind.UNAVAILABLE
    assert blocked("https://x.example", Policy(resolver=lambda _h, _p: [])).kind is Kind.UNAVAILABLE


@pytest.mark.parametrize("code", [301, 302, 307, 308])
def test_a_redirect_to_a_private_address_is_not_followed(reach: Connector, code: int) -> None:
    with serving(status(200)) as inside, serving() as wire:
        wire.answers.append(status(code, headers={"location": f"{inside.url}/secret"}))
        with pytest.raises(EndpointError) as caught:
            reach(wire).chat([User("hi")], [])
    assert inside.requests == []
    assert caught.value.kind is Kind.BLOCKED
    assert "redirect" in caught.value.sentence


def test_an_endpoint_that_speaks_no_trusted_tls_gets_no_request() -> None:
    policy = Policy(allow_networks=LOOPBACK, resolver=lambda _host, _port: ["127.0.0.1"])
    with serving(status(500)) as wire:
        error = blocked(f"https://vendor.example:{wire.port}/v1", policy)
    assert error.kind is Kind.UNAVAILABLE
    assert "TLS" in error.sentence
    assert wire.requests == []


def test_a_local_socket_is_no_way_around(reach: Connector) -> None:
    with serving(status(500)) as wire:
        model: Any = reach(wire)
    backend = model._client._client._transport._pool._network_backend
    assert isinstance(backend, httpcore2.NetworkBackend)
    with pytest.raises(EndpointError, match="local socket"):
        backend.connect_unix_socket("/run/docker.sock")


def test_a_request_cannot_leave_for_another_origin(reach: Connector) -> None:
    with serving(status(200)) as other, serving(status(200)) as wire:
        model: Any = reach(wire)
        with pytest.raises(EndpointError, match="address entered"):
            model._client._client.post(f"{other.url}/v1/messages")
    assert other.requests == []
