"""Sliding-window causal attention with relative positions and a tanh cap (Gemma 3n audio)."""

import math
from dataclasses import dataclass
from typing import Any

import torch

SOURCE = (
    "Own work: re-authored from public model code (the audio encoder of Gemma 3n). The workload"
    " class is named by SOL-ExecBench."
)

MAX_BACKWARD = 12
MAX_TIMESCALE = 10_000.0


@dataclass(frozen=True)
class Sizes:
    """One workload: batch, frames, model width, heads and the logits' cap."""

    batch: int
    n_frames: int
    width: int = 512
    n_heads: int = 8
    soft_cap: float = 50.0


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(64, 1_721),
    "smoke": Sizes(2, 149, width=64, n_heads=4),
    "smoke_2": Sizes(2, 149, width=64, n_heads=4, soft_cap=1.5),
    "heldout_1": Sizes(3, 997),
    "heldout_2": Sizes(16, 12),
    "heldout_3": Sizes(8, 600, soft_cap=1.5),
    "heldout_4": Sizes(4, 500, width=1_024),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw hidden_states, mask, four weights, the two scales and soft_cap; the caller seeds.

    At most MAX_BACKWARD frames at the end are padding, and never all, so that every window holds
    a valid key.
    """
    sizes = WORKLOADS[workload]

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, dtype=torch.float32, device=device)

    n_frames, width = sizes.n_frames, sizes.width
    hidden_states = normal(sizes.batch, n_frames, width)
    fewest = max(1, n_frames - MAX_BACKWARD)
    lengths = torch.randint(fewest, n_frames + 1, (sizes.batch, 1), device=device)
    mask = torch.arange(n_frames, device=device) >= lengths
    weights = [normal(width, width) / width**0.5 for _ in range(4)]
    per_dim_scale = 0.1 * normal(width // sizes.n_heads)
    steps = torch.arange(width // 2, dtype=torch.float32, device=device)
    inv_timescales = torch.exp(-steps * (math.log(MAX_TIMESCALE) / (width // 2 - 1)))
    return [hidden_states, mask, *weights, per_dim_scale, inv_timescales, sizes.soft_cap]


@torch.no_grad()
def reference(  # noqa: PLR0913, PLR0917
    hidden_states: torch.Tensor,
    mask: torch.Tensor,
    q_proj_weight: torch.Tensor,
    k_proj_weight: torch.Tensor,
    v_proj_weight: torch.Tensor,
    pos_proj_weight: torch.Tensor,
    per_dim_scale: torch.Tensor,
    inv_timescales: torch.Tensor,
    soft_cap: float,
) -> torch.Tensor:
    """Return [batch, frames, heads, dim]: each frame attends to itself and the 12 before it.

    The logit of frame t and key s is q_t . k_s + q_t . r_(t - s), capped by soft_cap * tanh(. /
    soft_cap); r_d is the projected table of distance d. Queries are scaled, channel by channel,
    by softplus(per_dim_scale) / (softplus(0) * sqrt(dim)). Padded frames are queries too.

    Args:
        hidden_states: [batch, frames, width], float32; float64 when the anchor is computed.
        mask: [batch, frames], bool: True is padding, no key.
        q_proj_weight: [width, width], the dtype of hidden_states, like all that follow.
        k_proj_weight: [width, width].
        v_proj_weight: [width, width].
        pos_proj_weight: [width, width]; its input is all sines, then all cosines.
        per_dim_scale: [dim].
        inv_timescales: [width / 2].
        soft_cap: largest magnitude of a logit.
    """
    wide = torch.promote_types(hidden_states.dtype, torch.float32)
    dim = per_dim_scale.shape[0]
    x = hidden_states.to(wide)
    q, k, v = (
        torch.unflatten(x @ weight.to(wide).t(), -1, (-1, dim))
        for weight in (q_proj_weight, k_proj_weight, v_proj_weight)
    )
    scale = torch.nn.functional.softplus(per_dim_scale.to(wide))
    q = q * (scale * (dim**-0.5 / math.log(2)))
    relative = _relative_keys(pos_proj_weight.to(wide), inv_timescales.to(wide), dim)

    content = torch.stack([(q * key).sum(dim=-1) for key in _window(k)], dim=-1)
    logits = content + torch.einsum("bthc,dhc->bthd", q, relative)
    capped = soft_cap * torch.tanh(logits / soft_cap)
    usable = torch.stack(list(_window(~mask)), dim=-1).unsqueeze(2)
    # The most negative number, not -inf: what the public module writes.
    capped = capped.masked_fill(~usable, torch.finfo(wide).min)
    weights = torch.softmax(capped, dim=-1)

    output = torch.zeros_like(v)
    for weight, value in zip(weights.unbind(-1), _window(v), strict=True):
        output.addcmul_(weight.unsqueeze(-1), value)
    return output.to(hidden_states.dtype)


def _relative_keys(
    pos_proj_weight: torch.Tensor, inv_timescales: torch.Tensor, dim: int
) -> torch.Tensor:
    """Return [distances, heads, dim], for distances 0 to MAX_BACKWARD."""
    distances = torch.arange(
        MAX_BACKWARD + 1, dtype=inv_timescales.dtype, device=inv_timescales.device
    )
    angles = torch.outer(distances, inv_timescales)
    table = torch.cat((angles.sin(), angles.cos()), dim=-1)
    return torch.unflatten(table @ pos_proj_weight.t(), -1, (-1, dim))


def _window(x: torch.Tensor) -> list[torch.Tensor]:
    """Return x [batch, frames, ...] moved on by 0 to MAX_BACKWARD frames; zero or False before."""
    n_frames = x.shape[1]
    before = x.new_zeros(x.shape[0], MAX_BACKWARD, *x.shape[2:])
    padded = torch.cat((before, x), dim=1)
    return [padded[:, first : first + n_frames] for first in range(MAX_BACKWARD, -1, -1)]


def bytes_moved() -> int:
    """Return the bytes of the full workload: every input and the output once."""
    sizes = WORKLOADS["full"]
    frames, width = sizes.batch * sizes.n_frames, sizes.width
    weights = 4 * width * width + width // sizes.n_heads + width // 2
    return 4 * (2 * frames * width + weights) + frames


def flops() -> int:
    """Return the operations of the full workload: q, k, v, and three products on each pair.

    The projection of the thirteen distances is left out.
    """
    sizes = WORKLOADS["full"]
    projections = 3 * 2 * sizes.batch * sizes.n_frames * sizes.width**2
    pairs = sum(min(frame, MAX_BACKWARD) + 1 for frame in range(sizes.n_frames))
    return projections + 3 * 2 * sizes.batch * pairs * sizes.width
