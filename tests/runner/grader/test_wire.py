"""What crosses the channel, and what is refused there."""

import json
import os
import socket
import struct
from collections.abc import Iterator

import pytest

from runner.grader.wire import LIMIT_BYTES, Channel, ClosedError, WireError, check_reply

Pair = tuple[Channel, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    """A channel of ours, and the bare socket of somebody who may write anything."""
    ours, theirs = socket.socketpair()
    channel = Channel(ours)
    yield channel, theirs
    channel.close()
    theirs.close()


def framed(body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + body


def test_a_message_arrives_as_it_was_sent(pair: Pair) -> None:
    channel, theirs = pair
    Channel(theirs).send({"kind": "held", "call": 3})
    assert channel.receive() == ({"kind": "held", "call": 3}, [])


def test_a_message_may_come_in_pieces(pair: Pair) -> None:
    channel, theirs = pair
    packet = framed(b'{"kind": "held"}')
    asked = []

    def patience() -> float:
        asked.append(None)
        theirs.sendall(packet[len(asked) - 1 : len(asked)])
        return 1.0

    assert channel.receive(patience=patience)[0] == {"kind": "held"}
    assert len(asked) == len(packet)


def test_patience_may_end_a_wait(pair: Pair) -> None:
    channel, _ = pair
    answers = iter([0.01, 0.01])

    def patience() -> float:
        for seconds in answers:
            return seconds
        raise TimeoutError("out of patience")

    with pytest.raises(TimeoutError, match="out of patience"):
        channel.receive(patience=patience)


def test_a_length_over_the_limit_is_refused_before_anything_is_read(pair: Pair) -> None:
    channel, theirs = pair
    theirs.sendall(struct.pack(">I", LIMIT_BYTES + 1))
    with pytest.raises(WireError, match=f"{LIMIT_BYTES + 1} bytes is over the limit"):
        channel.receive()


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"\xff\xfe",
        b"[1]",
        b"7",
        b'{"elapsed_ns": NaN}',
        b'{"elapsed_ns": Infinity}',
        b"[" * 100_000,
        b'{"call": ' + b"9" * 5_000 + b"}",
    ],
    ids=["cut", "not-utf8", "list", "number", "nan", "infinity", "deep", "huge-integer"],
)
def test_a_body_that_is_no_json_object_is_refused(pair: Pair, body: bytes) -> None:
    channel, theirs = pair
    theirs.sendall(framed(body))
    with pytest.raises(WireError):
        channel.receive()


def test_an_end_in_the_middle_of_a_message_is_no_message(pair: Pair) -> None:
    channel, theirs = pair
    theirs.sendall(framed(b'{"kind": "held"}')[:-1])
    theirs.close()
    with pytest.raises(ClosedError):
        channel.receive()


def test_descriptors_reach_the_child_in_order(pair: Pair) -> None:
    channel, theirs = pair
    sent = [os.memfd_create(name) for name in ("first", "second")]
    for fd, content in zip(sent, (b"1", b"2"), strict=True):
        os.write(fd, content)
    Channel(theirs).send({"kind": "hold"}, sent)
    _, received = channel.receive(n_fds=8)
    assert [os.pread(fd, 1, 0) for fd in received] == [b"1", b"2"]
    for fd in (*sent, *received):
        os.close(fd)


@pytest.mark.parametrize("knows_peer", [False, True])
def test_descriptors_that_nobody_asked_for_are_refused_and_never_opened(
    pair: Pair, knows_peer: bool
) -> None:
    channel, theirs = pair
    if knows_peer:
        channel.know_peer()
    open_before = len(os.listdir("/proc/self/fd"))
    Channel(theirs).send({"kind": "held"}, [0, 1, 2])
    with pytest.raises(WireError, match="descriptors"):
        channel.receive()
    assert len(os.listdir("/proc/self/fd")) == open_before


def test_the_kernel_names_the_sender(pair: Pair) -> None:
    channel, theirs = pair
    channel.know_peer()
    Channel(theirs).send({"kind": "held"})
    channel.receive()
    assert channel.peer_pid == os.getpid()


def test_waiting_bytes_are_seen_and_not_taken(pair: Pair) -> None:
    channel, theirs = pair
    assert channel.is_quiet()
    Channel(theirs).send({"kind": "held"})
    assert not channel.is_quiet()
    assert channel.receive()[0] == {"kind": "held"}


def test_a_message_over_the_limit_or_not_finite_is_not_sent(pair: Pair) -> None:
    channel, _ = pair
    with pytest.raises(ValueError, match="over the limit"):
        channel.send({"text": "x" * LIMIT_BYTES})
    with pytest.raises(ValueError, match="JSON"):
        channel.send({"value": float("inf")})


RETURNED = {
    "kind": "returned",
    "call": 4,
    "elapsed_ns": 10,
    "form": {},
    "written": True,
    "seen": [],
}


def test_an_answer_to_the_request_is_accepted() -> None:
    assert check_reply(dict(RETURNED), 4) == "returned"


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "passed"},
        {"kind": ["returned"]},
        {"call": 5},
        {"elapsed_ns": 1.5},
        {"elapsed_ns": True},
        {"written": 1},
        {"form": []},
        {"verdict": "passed"},
    ],
    ids=json.dumps,
)
def test_any_other_answer_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(WireError):
        check_reply({**RETURNED, **change}, 4)


def test_a_missing_field_is_named() -> None:
    message = {name: value for name, value in RETURNED.items() if name != "form"}
    with pytest.raises(WireError, match="form"):
        check_reply(message, 4)
