"""Why an endpoint gave no usable answer, as a kind and a sentence that quotes nothing it sent."""

import ssl
from collections.abc import Iterator
from enum import StrEnum
from typing import Final

import httpx2


class Kind(StrEnum):
    """What went wrong between us and an endpoint."""

    REFUSED = "refused"
    UNAUTHORISED = "unauthorised"
    NOT_FOUND = "not_found"
    TIMED_OUT = "timed_out"
    MALFORMED = "malformed"
    TOO_LARGE = "too_large"
    BLOCKED = "blocked"
    UNAVAILABLE = "unavailable"

    @property
    def is_transient(self) -> bool:
        """Whether the network or the provider is at fault, so that another try may do."""
        return self in (Kind.TIMED_OUT, Kind.UNAVAILABLE)


class EndpointError(Exception):
    """No usable answer. The sentence is safe to show to anyone: our words, no body, no key.

    `retry_after_sec` is the pause the endpoint asked for; None when it named none.
    """

    def __init__(self, kind: Kind, sentence: str, *, retry_after_sec: float | None = None) -> None:
        super().__init__(sentence)
        self.kind = kind
        self.sentence = sentence
        self.retry_after_sec = retry_after_sec


_BY_STATUS: Final = {
    401: (Kind.UNAUTHORISED, "the endpoint does not accept the key (status 401); enter it again"),
    403: (Kind.UNAUTHORISED, "the key may not use this model (status 403); check its rights"),
    404: (Kind.NOT_FOUND, "the address or the model id is unknown there (status 404); check both"),
    408: (Kind.UNAVAILABLE, "the endpoint gave up waiting (status 408)"),
    409: (Kind.UNAVAILABLE, "the endpoint reports a conflict (status 409)"),
    413: (Kind.REFUSED, "the conversation is too long for the endpoint (status 413)"),
    429: (Kind.UNAVAILABLE, "the endpoint limits the rate of requests (status 429)"),
}


# Looked up in order, along the whole chain of causes.
_BY_CAUSE: Final[tuple[tuple[type[BaseException], Kind, str], ...]] = (
    (httpx2.TimeoutException, Kind.TIMED_OUT, "the endpoint did not answer in time"),
    (
        ssl.SSLError,
        Kind.UNAVAILABLE,
        "no trusted TLS connection could be made; check the endpoint's certificate",
    ),
    (httpx2.ConnectError, Kind.UNAVAILABLE, "nothing accepts connections at the address"),
    (
        httpx2.TransportError,
        Kind.UNAVAILABLE,
        "the connection broke before the answer was whole",
    ),
    *(
        (
            kind,
            Kind.MALFORMED,
            "the answer is not what the wire protocol describes; check the provider",
        )
        for kind in (ValueError, TypeError, LookupError, AttributeError)
    ),
)


def explain(error: Exception) -> EndpointError:
    """Turn whatever an SDK raised into a kind and a sentence."""
    chain = list(_chain(error))
    for link in chain:
        if isinstance(link, EndpointError):
            return link
    status = getattr(error, "status_code", None)
    if isinstance(status, int) and status != 200:
        return _from_status(status, getattr(error, "response", None))
    for cause, kind, sentence in _BY_CAUSE:
        if any(isinstance(link, cause) for link in chain):
            return EndpointError(kind, sentence)
    return EndpointError(Kind.UNAVAILABLE, "the endpoint reported an error within its answer")


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _from_status(status: int, response: object) -> EndpointError:
    pause_sec = _retry_after_sec(response)
    if status in _BY_STATUS:
        kind, sentence = _BY_STATUS[status]
        return EndpointError(kind, sentence, retry_after_sec=pause_sec)
    if 300 <= status < 400:
        sentence = f"the endpoint redirects (status {status}), which is never followed"
        return EndpointError(Kind.BLOCKED, f"{sentence}; enter the final address")
    if status >= 500:
        sentence = f"the endpoint has a fault of its own (status {status})"
        return EndpointError(Kind.UNAVAILABLE, sentence, retry_after_sec=pause_sec)
    return EndpointError(Kind.REFUSED, f"the endpoint refused the request (status {status})")


def _retry_after_sec(response: object) -> float | None:
    """Read Retry-After in seconds; a date, or nonsense, counts as not named."""
    headers = getattr(response, "headers", {})
    try:
        pause_sec = float(headers["retry-after"])
    except (KeyError, ValueError):
        return None
    return pause_sec if 0 <= pause_sec < float("inf") else None
