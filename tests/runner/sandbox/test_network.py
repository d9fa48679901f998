"""A sandboxed command reaches nothing over any socket."""

import socket
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from tests.runner.sandbox.conftest import ISOLATING

pytestmark = pytest.mark.parametrize("level", ISOLATING, indirect=True)

CONNECT = """
import errno, json, socket, sys
def connect(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as client:
        client.settimeout(5)
        try:
            client.connect(address)
        except OSError as error:
            return errno.errorcode.get(error.errno, str(error))
        return "connected"
port, name = int(sys.argv[1]), "\\0" + sys.argv[2]
print(json.dumps({
    "loopback": connect(socket.AF_INET, ("127.0.0.1", port)),
    "outside": connect(socket.AF_INET, ("192.0.2.1", 80)),
    "abstract": connect(socket.AF_UNIX, name),
    "interfaces": [name for _, name in socket.if_nameindex()],
}))
"""


def test_neither_the_host_nor_the_world_can_be_reached(answer: Callable[..., Any]) -> None:
    name = f"listener-{uuid.uuid4()}"
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.socket(socket.AF_UNIX) as local,
    ):
        local.bind(f"\0{name}")
        local.listen()
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            pass  # from out here the same port answers
        seen = answer(CONNECT, str(port), name)
    assert seen["interfaces"] == ["lo"]
    # Landlock, where the kernel has it, refuses before the empty network could.
    assert seen["loopback"] in {"ENETUNREACH", "ECONNREFUSED", "EACCES"}
    assert seen["outside"] in {"ENETUNREACH", "EACCES"}
    assert seen["abstract"] in {"ECONNREFUSED", "EPERM"}


def test_names_cannot_be_resolved(answer: Callable[..., Any]) -> None:
    code = """
import json, socket
try:
    found = socket.getaddrinfo("example.org", 80)
except OSError:
    found = []
print(json.dumps(found))
"""
    assert answer(code) == []
