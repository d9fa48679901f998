"""Whole Mamba-2 mixer: projection, short convolution, scan, gated norm, projection (Nemotron-H)."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional

from problems.linear_attention import draws, ssd

SOURCE = (
    "Own work, re-authored from public model code: the Mamba-2 mixer of Nemotron-H."
    " The workload class is named by SOL-ExecBench."
)

GROUPS = 8
CHUNK = 128
TAPS = 4


@dataclass(frozen=True)
class Sizes:
    """One workload: batch, tokens, model width, heads, their width, state width, step limits."""

    batch: int
    n_tokens: int
    hidden_dim: int = 8_192
    n_heads: int = 256
    head_dim: int = 64
    state_dim: int = 256
    time_step_min: float = 0.0
    time_step_max: float = 1e6

    @property
    def inner(self) -> int:
        """Channels of all heads."""
        return self.n_heads * self.head_dim

    @property
    def convolved(self) -> int:
        """Channels that the convolution sees: those of all heads, and B and C of all groups."""
        return self.inner + 2 * GROUPS * self.state_dim

    @property
    def projected(self) -> int:
        """Channels of the input projection: gate, convolved ones, and a time step per head."""
        return self.inner + self.convolved + self.n_heads


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(8, 512),
    # Limits that some time steps reach: those of the full workload bind none.
    "smoke": Sizes(
        2,
        80,
        hidden_dim=64,
        n_heads=16,
        head_dim=16,
        state_dim=32,
        time_step_min=0.1,
        time_step_max=2.0,
    ),
    "heldout_1": Sizes(1, 1_000),
    "heldout_2": Sizes(3, 77),
    "heldout_3": Sizes(2, 256, hidden_dim=4_096, n_heads=128),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw hidden_states, the eight weights, time_step_min, time_step_max and norm_eps.

    The seed is the caller's.
    """
    sizes = WORKLOADS[workload]
    width, inner, heads = sizes.hidden_dim, sizes.inner, (sizes.n_heads,)
    return [
        draws.normal((sizes.batch, sizes.n_tokens, width), device),
        draws.normal((sizes.projected, width), device) / math.sqrt(width),
        draws.normal((sizes.convolved, 1, TAPS), device) / 2,
        draws.normal((sizes.convolved,), device),
        draws.normal(heads, device),
        draws.uniform(-5.0, -1.0, shape=heads, device=device),
        draws.normal(heads, device),
        draws.rounded_normal(1.0, 0.1, shape=(inner,), device=device),
        draws.normal((width, inner), device) / math.sqrt(inner),
        sizes.time_step_min,
        sizes.time_step_max,
        1e-5,
    ]


@torch.no_grad()
def reference(  # noqa: PLR0913, PLR0917
    hidden_states: torch.Tensor,
    in_proj_weight: torch.Tensor,
    conv_weight: torch.Tensor,
    conv_bias: torch.Tensor,
    dt_bias: torch.Tensor,
    A_log: torch.Tensor,
    D: torch.Tensor,
    norm_weight: torch.Tensor,
    out_proj_weight: torch.Tensor,
    time_step_min: float,
    time_step_max: float,
    norm_eps: float,
    *,
    groups: int = GROUPS,
    chunk: int = CHUNK,
) -> torch.Tensor:
    """Return the mixer's output; states start at zero and are not returned.

    The projection gives gate, convolved channels and time steps, in this order; the convolution
    with SiLU gives x, B and C. With dt = clamp(softplus(dt + dt_bias)) the scan of each head is
    S_t = e^(-e^A_log dt) S_(t-1) + dt x_t B_t^T, y_t = S_t C_t + D x_t. Then y silu(gate) is
    normalised in `groups` runs of channels by their root mean square, and projected.

    Args:
        hidden_states: [batch, tokens, width], bfloat16; float64 when the anchor is computed.
            All other tensors have the same dtype.
        in_proj_weight: [inner + convolved + heads, width], where inner = heads * P and
            convolved = inner + 2 * groups * N.
        conv_weight: [convolved, 1, 4]; the last tap meets the current token.
        conv_bias: [convolved].
        dt_bias: [heads].
        A_log: [heads].
        D: [heads].
        norm_weight: [inner].
        out_proj_weight: [width, inner].
        time_step_min: lower limit of the time steps.
        time_step_max: upper limit of the time steps.
        norm_eps: added to the mean squares.
        groups: of B and C, and of the norm. Head h uses group h // (heads / groups).
        chunk: tokens that are scanned together; no output depends on it but by rounding.

    Returns:
        The shape and dtype of hidden_states.
    """
    wide = torch.promote_types(hidden_states.dtype, torch.float32)
    heads, convolved, inner = A_log.shape[0], conv_bias.shape[0], norm_weight.shape[0]
    projected = functional.linear(hidden_states, in_proj_weight)
    gate, mixed, dt = projected.tensor_split((inner, inner + convolved), dim=-1)
    x, B, C = _convolve(mixed, conv_weight, conv_bias).tensor_split(
        (inner, (inner + convolved) // 2), dim=-1
    )

    dt = functional.softplus(dt.to(wide) + dt_bias.to(wide)).clamp(time_step_min, time_step_max)
    dt = dt.transpose(1, 2)
    x = torch.unflatten(x.to(wide), -1, (heads, -1)).transpose(1, 2)
    B, C = (torch.unflatten(part.to(wide), -1, (groups, -1)).transpose(1, 2) for part in (B, C))
    y, _ = ssd.scan(
        x * dt.unsqueeze(-1),
        -A_log.to(wide).exp()[:, None] * dt,
        B,
        C,
        chunk=chunk,
        state=x.new_zeros(*x.shape[:2], x.shape[-1], B.shape[-1]),
    )
    y = (y + D.to(wide)[:, None, None] * x).transpose(1, 2).flatten(2)

    gated = torch.unflatten(y * functional.silu(gate.to(wide)), -1, (groups, -1))
    rms = torch.rsqrt(gated.square().mean(dim=-1, keepdim=True) + norm_eps)
    normed = (gated * rms).flatten(-2) * norm_weight.to(wide)
    return functional.linear(normed.to(hidden_states.dtype), out_proj_weight)


def _convolve(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Convolve every channel of [batch, tokens, channels] with its own past; then SiLU."""
    padded = functional.pad(x.transpose(1, 2), (weight.shape[-1] - 1, 0))
    convolved = functional.conv1d(padded, weight, bias, groups=x.shape[-1])
    return functional.silu(convolved).transpose(1, 2)


def bytes_moved() -> int:
    """Return the bytes of the full workload: hidden states in and out, the weights once."""
    sizes = WORKLOADS["full"]
    width, inner = sizes.hidden_dim, sizes.inner
    projections = width * (sizes.projected + inner)
    vectors = (TAPS + 1) * sizes.convolved + 3 * sizes.n_heads + inner
    return 2 * (projections + vectors + 2 * sizes.batch * sizes.n_tokens * width)


def flops() -> int:
    """Return the operations of the full workload: projections, convolution and chunked scan."""
    sizes = WORKLOADS["full"]
    n_tokens, heads = sizes.batch * sizes.n_tokens, sizes.n_heads
    head_dim, state_dim = sizes.head_dim, sizes.state_dim
    projections = 2 * sizes.hidden_dim * (sizes.projected + sizes.inner)
    within = ssd.diagonal_flops(
        n_tokens,
        chunk=CHUNK,
        heads=heads,
        groups=GROUPS,
        head_dim=head_dim,
        state_dim=state_dim,
    )
    carried = ssd.carried_flops(n_tokens, heads=heads, head_dim=head_dim, state_dim=state_dim)
    return n_tokens * (projections + 2 * TAPS * sizes.convolved) + within + carried
