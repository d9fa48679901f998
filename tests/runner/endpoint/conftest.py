"""How the tests reach a scripted endpoint through the real SDKs."""

import ipaddress
from collections.abc import Callable

import pytest

from runner.endpoint import ChatModel, Patience, connect
from runner.messages import Endpoint
from tests.runner.endpoint.wire import Wire

LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"),)

Connector = Callable[..., ChatModel]


@pytest.fixture(params=["openai", "anthropic"])
def provider(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def pauses() -> list[float]:
    """The pauses that were asked for; none is waited."""
    return []


@pytest.fixture
def reach(provider: str, pauses: list[float]) -> Connector:
    def _reach(wire: Wire, *, turn_limit_sec: float = 30.0, key: str = "sk-secret") -> ChatModel:
        base_url = f"{wire.url}/v1" if provider == "openai" else wire.url
        endpoint = Endpoint(provider=provider, base_url=base_url, model_id="some-model")
        patience = Patience(sleep=pauses.append, turn_limit_sec=turn_limit_sec)
        return connect(endpoint, key, LOOPBACK, patience=patience)

    return _reach
