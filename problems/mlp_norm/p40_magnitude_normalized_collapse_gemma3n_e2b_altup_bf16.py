"""Project two auxiliary streams, give them the size of stream 0, average all three (Gemma-3n)."""

from dataclasses import dataclass
from typing import Any

import torch

SOURCE = (
    "Own work, written from public model code: how Gemma-3n E2B collapses its AltUp streams, with"
    " three of them. The workload class is named by SOL-ExecBench."
)

EPS = 1e-5


@dataclass(frozen=True)
class Sizes:
    """One workload: batch, sequence, width.

    Of the tokens of the auxiliary streams, every `faint_every`th is multiplied by `faint_factor`.
    """

    batch: int
    seq_len: int
    hidden_size: int = 3_072
    faint_every: int | None = None
    faint_factor: float = 0.0


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(64, 256),
    # So faint a token falls below the least mean square: eps shows.
    "smoke": Sizes(2, 32, hidden_size=192, faint_every=64, faint_factor=1e-4),
    "smoke_2": Sizes(2, 32, hidden_size=192, faint_every=64),
    "heldout_1": Sizes(1, 1),
    "heldout_2": Sizes(3, 501, faint_every=10),
    "heldout_3": Sizes(4, 256, hidden_size=2_048),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw hidden_states, both weights and eps; the seed is the caller's.

    Tokens of stream 0 differ in size, by a factor from 0.5 to 2. The weights are not scaled down.
    """
    sizes = WORKLOADS[workload]
    tokens, width = (sizes.batch, sizes.seq_len), sizes.hidden_size
    hidden_states = torch.randn(3, *tokens, width, dtype=torch.bfloat16, device=device)
    hidden_states[0] *= torch.rand(*tokens, 1, dtype=torch.bfloat16, device=device) * 1.5 + 0.5
    if sizes.faint_every is not None:
        hidden_states.view(3, -1, width)[1:, :: sizes.faint_every] *= sizes.faint_factor
    weights = [torch.randn(width, width, dtype=torch.bfloat16, device=device) for _ in range(2)]
    return [hidden_states, *weights, EPS]


@torch.no_grad()
def reference(
    hidden_states: torch.Tensor,
    unembed_weight_1: torch.Tensor,
    unembed_weight_2: torch.Tensor,
    eps: float,
) -> torch.Tensor:
    """Return the mean of stream 0 and both projected streams, rounded once, at the very end.

    A projected token is multiplied by the ratio of stream 0's root mean square to its own.

    Args:
        hidden_states: [3, batch, seq, width], bfloat16; float64 when the anchor is computed.
        unembed_weight_1: [width, width] of [out, in], the dtype of hidden_states.
        unembed_weight_2: as unembed_weight_1.
        eps: the least mean square of a projected token, so that a zero token stays zero.

    Returns:
        [batch, seq, width] in the dtype of hidden_states.
    """
    wide = torch.promote_types(hidden_states.dtype, torch.float32)
    streams = [hidden_states[0].to(wide)]
    target = streams[0].square().mean(dim=-1, keepdim=True).sqrt()
    for number, weight in enumerate((unembed_weight_1, unembed_weight_2), start=1):
        projected = hidden_states[number].to(wide) @ weight.to(wide).t()
        own = projected.square().mean(dim=-1, keepdim=True).clamp(min=eps).sqrt()
        streams.append(projected * (target / own))
    return torch.stack(streams).mean(dim=0).to(hidden_states.dtype)


def bytes_moved() -> int:
    """Return the bytes of the full workload: three streams and both weights read, one written."""
    sizes = WORKLOADS["full"]
    width = sizes.hidden_size
    return 2 * (4 * sizes.batch * sizes.seq_len * width + 2 * width * width)


def flops() -> int:
    """Return the floating-point operations of both products in the full workload."""
    sizes = WORKLOADS["full"]
    return 2 * 2 * sizes.batch * sizes.seq_len * sizes.hidden_size**2
