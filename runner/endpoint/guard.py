"""The HTTP client for endpoints: it checks where it connects, how much it reads and how long.

Everything is enforced where sockets are opened and read, below whatever an SDK does: a name is
resolved once, every answer is checked, and the connection goes to a checked address, so a name
that resolves differently a moment later gains nothing. URL, Host and certificate keep the name.
"""

import ssl
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

import httpcore2
import httpx2

from runner.endpoint import addresses
from runner.endpoint.errors import EndpointError, Kind

CONNECT_LIMIT_SEC = 10.0
# Models that think without streaming their thoughts are silent for minutes.
IDLE_LIMIT_SEC = 600.0
ANSWER_LIMIT_BYTES = 4_000_000
HTTPS_PORT = 443

# The SDKs add headers that the operator's environment names, organisation and all; those are not
# the vendor's to see.
_SENT_HEADERS = frozenset(
    {
        "accept",
        "anthropic-version",
        "authorization",
        "connection",
        "content-length",
        "content-type",
        "host",
        "transfer-encoding",
        "user-agent",
        "x-api-key",
    }
)

SocketOption = (
    tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]
)


@dataclass(frozen=True)
class Policy:
    """Where a client may connect, and the seams that tests pass through."""

    allow_networks: Sequence[addresses.Network] = ()
    resolver: addresses.Resolver = addresses.resolve
    clock: Callable[[], float] = time.monotonic


class Ration:
    """The bytes and seconds that are left to the request under way; one client, one thread."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.renew(IDLE_LIMIT_SEC)

    def renew(self, limit_sec: float) -> None:
        """Start a request: a full answer's bytes, and this many seconds."""
        self._n_left_bytes = ANSWER_LIMIT_BYTES
        self._ends_at = self._clock() + limit_sec

    def seconds(self, timeout: float | None) -> float:
        """Return how long one wait may take.

        Raises:
            EndpointError: no time is left.
        """
        left_sec = self._ends_at - self._clock()
        if left_sec <= 0:
            raise EndpointError(Kind.TIMED_OUT, "the answer took longer than the turn may last")
        return left_sec if timeout is None else min(timeout, left_sec)

    def spend(self, n_bytes: int) -> None:
        """Count what was read.

        Raises:
            EndpointError: the answer is over its limit.
        """
        self._n_left_bytes -= n_bytes
        if self._n_left_bytes < 0:
            sentence = f"the answer is longer than {ANSWER_LIMIT_BYTES:,} bytes"
            raise EndpointError(Kind.TOO_LARGE, sentence)


class _RationedStream(httpcore2.NetworkStream):
    """A connection whose reads are counted and timed."""

    def __init__(self, inner: httpcore2.NetworkStream, ration: Ration) -> None:
        self._inner = inner
        self._ration = ration

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        chunk = self._inner.read(max_bytes, self._ration.seconds(timeout))
        self._ration.spend(len(chunk))
        return chunk

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, self._ration.seconds(timeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.NetworkStream:
        inner = self._inner.start_tls(ssl_context, server_hostname, self._ration.seconds(timeout))
        return _RationedStream(inner, self._ration)

    def get_extra_info(self, info: str) -> object:
        return self._inner.get_extra_info(info)


class _CheckedBackend(httpcore2.NetworkBackend):
    """Opens connections to checked addresses only."""

    def __init__(self, policy: Policy, ration: Ration, *, is_encrypted: bool) -> None:
        self._policy = policy
        self._ration = ration
        self._is_encrypted = is_encrypted
        self._inner = httpcore2.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,  # noqa: ARG002
        socket_options: Iterable[SocketOption] | None = None,  # noqa: ARG002
    ) -> httpcore2.NetworkStream:
        *others, last = self._checked(host, port)
        for address in others:
            try:
                return self._connect(address, port, timeout)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout):
                continue  # often the host has no route for one of the two IP versions
        return self._connect(last, port, timeout)

    def connect_unix_socket(
        self,
        path: str,  # noqa: ARG002
        timeout: float | None = None,  # noqa: ARG002
        socket_options: Iterable[SocketOption] | None = None,  # noqa: ARG002
    ) -> httpcore2.NetworkStream:
        raise EndpointError(Kind.BLOCKED, "an endpoint cannot be a local socket")

    def _connect(self, address: str, port: int, timeout: float | None) -> httpcore2.NetworkStream:
        stream = self._inner.connect_tcp(address, port, timeout=self._ration.seconds(timeout))
        return _RationedStream(stream, self._ration)

    def _checked(self, host: str, port: int) -> list[str]:
        """Return the host's addresses; a single bad one condemns them all."""
        allow_networks = self._policy.allow_networks
        try:
            answers = self._policy.resolver(host, port)
        except (OSError, UnicodeError) as error:
            raise EndpointError(Kind.UNAVAILABLE, "the host name does not resolve") from error
        checked = [addresses.check_address(answer, allow_networks) for answer in answers]
        if not checked:
            raise EndpointError(Kind.UNAVAILABLE, "the host name does not resolve")
        if all(addresses.is_allowed(address, allow_networks) for address in checked):
            return checked
        if not self._is_encrypted:
            raise EndpointError(
                Kind.BLOCKED, "a public address needs https; http would show the key"
            )
        if port != HTTPS_PORT:
            raise EndpointError(Kind.BLOCKED, f"a public address must use port {HTTPS_PORT}")
        return checked


@cache
def _tls() -> ssl.SSLContext:
    """Return the one TLS setting of every client; reading the certificates takes a while."""
    return httpx2.create_ssl_context(trust_env=False)


class _GuardedTransport(httpx2.HTTPTransport):
    """Sends requests to one origin, and takes only answers that are not compressed."""

    def __init__(self, base_url: httpx2.URL, policy: Policy, ration: Ration) -> None:
        super().__init__(verify=_tls(), trust_env=False)
        self._origin = (base_url.scheme, base_url.host, base_url.port)
        # The only way in: the transport has no parameter for it. A test fails if it is not used.
        self._pool = httpcore2.ConnectionPool(
            ssl_context=_tls(),
            network_backend=_CheckedBackend(
                policy, ration, is_encrypted=base_url.scheme == "https"
            ),
        )

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        if (url.scheme, url.host, url.port) != self._origin or url.userinfo:
            raise EndpointError(Kind.BLOCKED, "a request may go only to the address entered")
        for name in set(request.headers) - _SENT_HEADERS:
            del request.headers[name]
        # Set here, so that no SDK default can ask for an answer that swells when it is unpacked.
        request.headers["accept-encoding"] = "identity"
        response = super().handle_request(request)
        if response.headers.get("content-encoding", "identity").strip().lower() != "identity":
            response.close()
            raise EndpointError(Kind.MALFORMED, "the answer is compressed, which was not asked for")
        return response


def guarded_client(base_url: str, *, policy: Policy, ration: Ration) -> httpx2.Client:
    """Return a client for one base URL: no redirects, no proxies, nothing from the environment.

    Raises:
        EndpointError: the base URL is none that an endpoint may have.
    """
    return httpx2.Client(
        transport=_GuardedTransport(checked_url(base_url), policy, ration),
        follow_redirects=False,
        trust_env=False,
        timeout=httpx2.Timeout(IDLE_LIMIT_SEC, connect=CONNECT_LIMIT_SEC),
    )


def checked_url(base_url: str) -> httpx2.URL:
    """Read a base URL.

    Raises:
        EndpointError: no http(s) address, no host, or a name and password inside it.
    """
    try:
        url = httpx2.URL(base_url)
    except (httpx2.InvalidURL, UnicodeError) as error:
        raise EndpointError(Kind.BLOCKED, "the base URL cannot be read as an address") from error
    if url.scheme not in ("http", "https") or not url.host:
        raise EndpointError(Kind.BLOCKED, "the base URL must begin with https:// and name a host")
    if url.userinfo:
        raise EndpointError(Kind.BLOCKED, "the base URL may not hold a name or a password")
    return url
