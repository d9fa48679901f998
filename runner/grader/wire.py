"""Messages between parent and child: length-prefixed JSON, capped and checked, over a socket."""

import array
import json
import socket
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

LIMIT_BYTES = 1 << 18
FD_LIMIT = 128

_LENGTH = struct.Struct(">I")
_CREDENTIALS = struct.Struct("iii")

Message = dict[str, Any]

# What the child may say: the fields of each kind of message, and nothing else.
REPLIES: Mapping[str, Mapping[str, type]] = {
    "ready": {"call": int, "versions": dict},
    "loaded": {"call": int, "seen": list},
    "held": {"call": int},
    "returned": {"call": int, "elapsed_ns": int, "form": dict, "written": bool, "seen": list},
    "failed": {"call": int, "error": dict},
}


class WireError(Exception):
    """The other side sent what no honest one sends."""


class ClosedError(Exception):
    """The other side is gone."""


class Channel:
    """One end of the socket pair.

    `peer_pid` is the sender of the last bytes as the kernel tells it, in the reader's own PID
    namespace; None until `know_peer` was called and something arrived.
    """

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._knows_peer = False
        self.peer_pid: int | None = None

    def know_peer(self) -> None:
        """Ask the kernel to state who sends; the sender cannot forge it."""
        self._end.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._knows_peer = True

    def send(self, message: Mapping[str, Any], fds: Sequence[int] = ()) -> None:
        """Send one message, with file descriptors beside it.

        Raises:
            ClosedError: nobody reads any more.
            ValueError: the message is over the limit, or holds a number that is not finite.
        """
        body = json.dumps(message, allow_nan=False).encode()
        if len(body) > LIMIT_BYTES or len(fds) > FD_LIMIT:
            raise ValueError(
                f"a message of {len(body)} bytes and {len(fds)} descriptors is over the limit of"
                f" {LIMIT_BYTES} and {FD_LIMIT}; send less"
            )
        packet = memoryview(_LENGTH.pack(len(body)) + body)
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        try:
            n_sent = self._end.sendmsg([packet], rights)
            self._end.sendall(packet[n_sent:])
        except OSError as error:
            raise ClosedError(f"the other side is gone: {error}") from error

    def receive(
        self, *, patience: Callable[[], float] | None = None, n_fds: int = 0
    ) -> tuple[Message, list[int]]:
        """Return the next message and the descriptors that came with it.

        Args:
            patience: called before every wait; returns how many seconds to wait before it is
                asked again, or raises to stop waiting. None waits for ever.
            n_fds: how many descriptors may come; the rest never enter this process.

        Raises:
            ClosedError: the other side closed before the message was complete.
            WireError: too long, not JSON, not an object, or more descriptors than allowed.
        """
        fds: list[int] = []
        (length,) = _LENGTH.unpack(self._read(_LENGTH.size, patience, n_fds, fds))
        if length > LIMIT_BYTES:
            raise WireError(f"a message of {length} bytes is over the limit of {LIMIT_BYTES}")
        return _parse(self._read(length, patience, n_fds, fds)), fds

    def is_quiet(self) -> bool:
        """Whether nothing waits to be read, as it must be before the parent asks."""
        self._end.settimeout(0)
        try:
            return self._end.recv(1, socket.MSG_PEEK) == b""
        except BlockingIOError:
            return True
        except OSError as error:
            raise ClosedError(f"the other side is gone: {error}") from error

    def close(self) -> None:
        """Close this end."""
        self._end.close()

    def _read(
        self, n_bytes: int, patience: Callable[[], float] | None, n_fds: int, fds: list[int]
    ) -> bytes:
        # No room is no reading: the system then closes descriptors that nobody asked for.
        space = socket.CMSG_SPACE(_CREDENTIALS.size) if self._knows_peer else 0
        space += socket.CMSG_SPACE(4 * n_fds) if n_fds else 0
        parts = bytearray()
        while len(parts) < n_bytes:
            self._end.settimeout(patience() if patience else None)
            try:
                part, beside, flags, _ = self._end.recvmsg(n_bytes - len(parts), space)
            except TimeoutError:
                continue
            except OSError as error:
                raise ClosedError(f"the other side is gone: {error}") from error
            self._keep(beside, fds)
            if flags & socket.MSG_CTRUNC or len(fds) > n_fds:
                raise WireError(f"a message brought more than {n_fds} file descriptors")
            if not part:
                raise ClosedError("the other side closed the channel")
            parts += part
        return bytes(parts)

    def _keep(self, beside: list[tuple[int, int, bytes]], fds: list[int]) -> None:
        for level, kind, content in beside:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS):
                self.peer_pid = _CREDENTIALS.unpack(content)[0]
            elif (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                received = array.array("i")
                received.frombytes(content[: len(content) - len(content) % received.itemsize])
                fds.extend(received)


def check_reply(message: Message, call: int) -> str:
    """Return the kind of a child's message, which must answer request number `call`.

    Raises:
        WireError: the kind is unknown, a field is missing, extra or of another type, or the
            message answers another request.
    """
    fields = {name: value for name, value in message.items() if name != "kind"}
    schema = REPLIES.get(kind) if isinstance(kind := message.get("kind"), str) else None
    if schema is None or not isinstance(kind, str):
        raise WireError(f"a message of kind {str(kind)[:40]!r} is not in the protocol")
    wrong = set(fields) ^ set(schema)
    wrong |= {name for name, value in fields.items() if type(value) is not schema.get(name)}
    if wrong:
        raise WireError(f"a {kind} message has wrong fields: {', '.join(sorted(wrong))[:200]}")
    if fields["call"] != call:
        raise WireError(f"a {kind} message answers request {fields['call']}, not {call}")
    return kind


def _parse(body: bytes) -> Message:
    try:
        message = json.loads(body.decode(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise WireError(f"a message is not JSON: {str(error)[:200]}") from error
    if not isinstance(message, dict):
        raise WireError(f"a message is a JSON {type(message).__name__}, not an object")
    return message


def _refuse_constant(text: str) -> None:
    raise ValueError(f"{text} is not a JSON number")
