"""Trying again after faults of the network or the provider: how often, and how long to wait.

The SDKs' own repeats are switched off: they obey a server that asks for a repeat of a refusal, or
for a pause of weeks, and they never repeat an answer that broke off half-way.
"""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from runner.endpoint.chat import Reply
from runner.endpoint.errors import EndpointError
from runner.endpoint.guard import IDLE_LIMIT_SEC
from runner.protocol import MAX_TRIES

TURN_LIMIT_SEC = 2 * IDLE_LIMIT_SEC


@dataclass(frozen=True)
class Patience:
    """How a turn is tried again; the seams let tests wait for nothing."""

    n_tries: int = MAX_TRIES
    first_pause_sec: float = 8.0
    longest_pause_sec: float = 60.0
    turn_limit_sec: float = TURN_LIMIT_SEC
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    chance: random.Random = field(default_factory=random.Random)

    def pause_sec(self, error: EndpointError, n_failed: int) -> float:
        """Return the pause after the n-th failure, counted from 1.

        What the endpoint asked for, if anything; otherwise twice as long each time, and less by up
        to half at random, so that attempts that failed together do not come back together.
        """
        if error.retry_after_sec is not None:
            return min(error.retry_after_sec, self.longest_pause_sec)
        full_sec = min(self.first_pause_sec * 2.0 ** (n_failed - 1), self.longest_pause_sec)
        return full_sec * self.chance.uniform(0.5, 1.0)


def insist(
    ask: Callable[[float], Reply], *, patience: Patience, timeout_sec: float | None
) -> Reply:
    """Return the reply of `ask`, called again after transient faults.

    Args:
        ask: makes one request; takes the seconds it may last.
        patience: how often and when.
        timeout_sec: the longest that all tries and pauses may take together; None for the usual.

    Raises:
        EndpointError: the last fault, or the first that a repeat cannot cure.
    """
    limit_sec = patience.turn_limit_sec if timeout_sec is None else timeout_sec
    ends_at = patience.clock() + min(limit_sec, patience.turn_limit_sec)
    n_failed = 0
    while True:
        try:
            return ask(ends_at - patience.clock())
        except EndpointError as error:
            n_failed += 1
            pause_sec = patience.pause_sec(error, n_failed)
            is_late = patience.clock() + pause_sec >= ends_at
            if not error.kind.is_transient or n_failed >= patience.n_tries or is_late:
                raise
        patience.sleep(pause_sec)
