"""Two linear layers with biases and a tanh-form GELU between them (FLUX)."""

from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import linear

from problems.mlp_norm.activations import gelu_tanh
from problems.mlp_norm.draws import linear_weight

SOURCE = (
    "Own work, re-authored from public model code: the feed-forward block of FLUX."
    " The workload class is named by SOL-ExecBench."
)


@dataclass(frozen=True)
class Sizes:
    """One workload: batch, sequence length, model width and width of the hidden layer."""

    batch: int
    seq_len: int
    hidden_dim: int = 3_072
    mlp_hidden_dim: int = 12_288


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(32, 512),
    "smoke": Sizes(2, 16, hidden_dim=96, mlp_hidden_dim=384),
    "heldout_1": Sizes(1, 1),
    "heldout_2": Sizes(3, 777),
    "heldout_3": Sizes(4, 256, hidden_dim=1_536, mlp_hidden_dim=6_144),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw x, fc1_weight, fc1_bias, fc2_weight and fc2_bias; the seed is the caller's."""
    sizes = WORKLOADS[workload]
    width, inner = sizes.hidden_dim, sizes.mlp_hidden_dim
    x = torch.randn(sizes.batch, sizes.seq_len, width, dtype=torch.float32, device=device)
    layers = []
    for n_out, n_in in ((inner, width), (width, inner)):
        layers += [
            linear_weight(n_out, n_in, dtype=torch.float32, device=device),
            torch.randn(n_out, dtype=torch.float32, device=device),
        ]
    return [x, *layers]


@torch.no_grad()
def reference(
    x: torch.Tensor,
    fc1_weight: torch.Tensor,
    fc1_bias: torch.Tensor,
    fc2_weight: torch.Tensor,
    fc2_bias: torch.Tensor,
) -> torch.Tensor:
    """Return gelu(x @ fc1_weight^T + fc1_bias) @ fc2_weight^T + fc2_bias, GELU in its tanh form.

    Args:
        x: [batch, sequence, width], float32; float64 when the anchor is computed.
        fc1_weight: [inner, width], the dtype of x.
        fc1_bias: [inner], likewise.
        fc2_weight: [width, inner], likewise.
        fc2_bias: [width], likewise.

    Returns:
        The shape and dtype of x.
    """
    return linear(gelu_tanh(linear(x, fc1_weight, fc1_bias)), fc2_weight, fc2_bias)


def bytes_moved() -> int:
    """Return the bytes of the full workload: x, both layers and the output once."""
    sizes = WORKLOADS["full"]
    width, inner = sizes.hidden_dim, sizes.mlp_hidden_dim
    activations = 2 * sizes.batch * sizes.seq_len * width
    return 4 * (activations + 2 * width * inner + width + inner)


def flops() -> int:
    """Return the floating-point operations of both products in the full workload."""
    sizes = WORKLOADS["full"]
    return 4 * sizes.batch * sizes.seq_len * sizes.hidden_dim * sizes.mlp_hidden_dim
