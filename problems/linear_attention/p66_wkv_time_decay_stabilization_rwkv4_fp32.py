"""WKV recurrence: decaying means by channel, kept stable by a running maximum (RWKV-4)."""

from dataclasses import dataclass
from typing import Any

import torch

SOURCE = (
    "Own work, re-authored from public model code: the WKV recurrence of RWKV-4 with its state."
    " The workload class is named by SOL-ExecBench."
)

# Sums, differences, products and the quotient of one step; no maxima, no exponentials.
OPERATIONS = 17


@dataclass(frozen=True)
class Sizes:
    """One workload: batch, tokens, channels, and a factor on the keys."""

    batch: int
    n_tokens: int
    n_channels: int = 2_048
    key_scale: float = 1.0


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(64, 1_721),
    "smoke": Sizes(2, 61, n_channels=64),
    "heldout_1": Sizes(2, 5_000),
    "heldout_2": Sizes(100, 7),
    "heldout_3": Sizes(8, 300, n_channels=777, key_scale=20.0),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw time_decay, key, time_first, value and the three states; the seed is the caller's."""
    sizes = WORKLOADS[workload]
    channels = (sizes.n_channels,)
    states = (sizes.batch, sizes.n_channels)
    tokens = (sizes.batch, sizes.n_tokens, sizes.n_channels)

    def normal(shape: tuple[int, ...]) -> torch.Tensor:
        return torch.randn(shape, dtype=torch.float32, device=device)

    def uniform(low: float, high: float, shape: tuple[int, ...]) -> torch.Tensor:
        return torch.empty(shape, dtype=torch.float32, device=device).uniform_(low, high)

    time_decay = uniform(-6.0, -1.0, channels)
    key = normal(tokens)
    if sizes.key_scale != 1.0:
        key *= sizes.key_scale
    time_first = 0.3 * normal(channels)
    value = normal(tokens)
    num_state, max_state = normal(states), normal(states)
    den_state = uniform(0.5, 2.0, states)
    return [time_decay, key, time_first, value, num_state, max_state, den_state]


@torch.no_grad()
def reference(  # noqa: PLR0913, PLR0917
    time_decay: torch.Tensor,
    key: torch.Tensor,
    time_first: torch.Tensor,
    value: torch.Tensor,
    num_state: torch.Tensor,
    max_state: torch.Tensor,
    den_state: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return (wkv, num_state, max_state, den_state): the outputs, and the state after the last.

    A channel holds a numerator n and a denominator d, both understood times e^m. Each token's
    output is their quotient once the token has joined with the weight e^(key + time_first); the
    state then decays by e^(-e^time_decay) and takes the token in with the weight e^key. Every sum
    is formed under the largest exponent in it, which in the state becomes the new m.

    Args:
        time_decay: [channels], float32; float64 when the anchor is computed.
        key: [batch, tokens, channels], likewise.
        time_first: [channels], likewise: the bonus of the current token, in its output only.
        value: as key.
        num_state: [batch, channels], likewise: n before the first token.
        max_state: as num_state: m.
        den_state: as num_state: d, above 0.

    Returns:
        wkv: the shape of key, in float32 (float64 in the anchor), as are the states.
        num_state: [batch, channels].
        max_state: [batch, channels].
        den_state: [batch, channels].
    """
    wide = torch.promote_types(key.dtype, torch.float32)
    decay, bonus = -time_decay.to(wide).exp(), time_first.to(wide)
    keys, values = key.to(wide), value.to(wide)
    n, m, d = (state.to(wide) for state in (num_state, max_state, den_state))
    wkv = torch.empty_like(values)
    for t in range(key.shape[1]):
        k, v = keys[:, t], values[:, t]
        n_out, _, d_out = _join(n, m, d, exponent=k + bonus, value=v)
        wkv[:, t] = n_out / d_out
        n, m, d = _join(n, m + decay, d, exponent=k, value=v)
    return wkv, n, m, d


def _join(
    n: torch.Tensor,
    m: torch.Tensor,
    d: torch.Tensor,
    *,
    exponent: torch.Tensor,
    value: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Add e^exponent times (value, 1) to e^m times (n, d), under the larger exponent."""
    largest = torch.maximum(m, exponent)
    kept, added = torch.exp(m - largest), torch.exp(exponent - largest)
    return kept * n + added * value, largest, kept * d + added


def bytes_moved() -> int:
    """Return the bytes of the full workload: key, value and wkv once, states in and out."""
    sizes = WORKLOADS["full"]
    per_channel = sizes.batch * (3 * sizes.n_tokens + 6) + 2
    return 4 * sizes.n_channels * per_channel


def flops() -> int:
    """Return the operations of the full workload, elementwise; exponentials are not counted."""
    sizes = WORKLOADS["full"]
    return OPERATIONS * sizes.batch * sizes.n_tokens * sizes.n_channels
