"""A demo server on a free port, with whatever behaviour a test asks for."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from runner.demo.server import Behaviour, DemoServer


@pytest.fixture
def serve() -> Iterator[Callable[..., DemoServer]]:
    servers: list[DemoServer] = []

    def start(**behaviour: Any) -> DemoServer:
        server = DemoServer("127.0.0.1", 0, Behaviour(**behaviour))
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()
