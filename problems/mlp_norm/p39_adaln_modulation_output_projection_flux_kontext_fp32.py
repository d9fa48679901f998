"""Layer norm scaled and shifted by a conditioning vector and a narrow projection (FLUX Kontext)."""

from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import linear

from problems.mlp_norm.activations import silu
from problems.mlp_norm.draws import linear_weight
from problems.mlp_norm.norms import layer_norm

SOURCE = (
    "Own work, re-authored from public model code: the adaptive norm and output projection of"
    " FLUX.1 Kontext. The workload class is named by SOL-ExecBench."
)

EPS = 1e-6


@dataclass(frozen=True)
class Sizes:
    """One workload: batch, sequence, widths in and out, and what is added to hidden_states."""

    batch: int
    seq_len: int
    inner_dim: int = 3_072
    output_dim: int = 64
    offset: float = 0.0


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(32, 256),
    "smoke": Sizes(2, 16, inner_dim=192, output_dim=16),
    "smoke_2": Sizes(2, 16, inner_dim=192, output_dim=16, offset=10.0),
    "heldout_1": Sizes(1, 1),
    "heldout_2": Sizes(5, 777, offset=10.0),
    "heldout_3": Sizes(4, 256, inner_dim=1_536, output_dim=32),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw hidden_states, conditioning, both layers with biases, and eps; the caller seeds."""
    sizes = WORKLOADS[workload]
    width = sizes.inner_dim

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, dtype=torch.float32, device=device)

    hidden_states = normal(sizes.batch, sizes.seq_len, width)
    if sizes.offset:
        hidden_states += sizes.offset
    conditioning = normal(sizes.batch, width)
    layers = []
    for n_out in (2 * width, sizes.output_dim):
        weight = linear_weight(n_out, width, dtype=torch.float32, device=device)
        layers += [weight, normal(n_out)]
    return [hidden_states, conditioning, *layers, EPS]


@torch.no_grad()
def reference(  # noqa: PLR0913, PLR0917
    hidden_states: torch.Tensor,
    conditioning: torch.Tensor,
    mod_weight: torch.Tensor,
    mod_bias: torch.Tensor,
    proj_weight: torch.Tensor,
    proj_bias: torch.Tensor,
    eps: float,
) -> torch.Tensor:
    """Return (norm(hidden_states) * (1 + scale) + shift) @ proj_weight^T + proj_bias.

    scale and shift are the halves of silu(conditioning) @ mod_weight^T + mod_bias: one pair per
    sample, for all its tokens. The norm subtracts the mean and divides by sqrt(biased variance +
    eps); it has no weights.

    Args:
        hidden_states: [batch, sequence, width], float32; float64 when the anchor is computed.
        conditioning: [batch, width], the dtype of hidden_states.
        mod_weight: [2 width, width], likewise: all rows of the scale, then all of the shift.
        mod_bias: [2 width], likewise.
        proj_weight: [outputs, width], likewise.
        proj_bias: [outputs], likewise.
        eps: what the norm adds to the variance.

    Returns:
        [batch, sequence, outputs] in the dtype of hidden_states.
    """
    modulation = linear(silu(conditioning), mod_weight, mod_bias)
    scale, shift = modulation.unsqueeze(1).chunk(2, dim=-1)
    modulated = layer_norm(hidden_states, eps) * (1 + scale) + shift
    return linear(modulated, proj_weight, proj_bias)


def bytes_moved() -> int:
    """Return the bytes of the full workload: inputs, parameters and output once."""
    sizes = WORKLOADS["full"]
    width, out = sizes.inner_dim, sizes.output_dim
    activations = sizes.batch * (sizes.seq_len * (width + out) + width)
    return 4 * (activations + (2 * width + out) * (width + 1))


def flops() -> int:
    """Return the floating-point operations of both products in the full workload."""
    sizes = WORKLOADS["full"]
    width = sizes.inner_dim
    return 2 * sizes.batch * width * (2 * width + sizes.seq_len * sizes.output_dim)
