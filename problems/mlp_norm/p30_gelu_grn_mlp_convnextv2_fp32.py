"""Channels-last MLP that scales each hidden channel by its size over the image (ConvNeXt V2)."""

from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import linear

from problems.mlp_norm.activations import gelu_erf
from problems.mlp_norm.draws import linear_weight

SOURCE = (
    "Own work, re-authored from public model code: the MLP of a ConvNeXt V2 block with its global"
    " response normalisation. The workload class is named by SOL-ExecBench."
)

EPS = 1e-6


@dataclass(frozen=True)
class Sizes:
    """One workload: images, their height and width, and channels outside and inside the MLP."""

    batch: int
    height: int
    width: int
    dim: int = 128
    hidden_dim: int = 512


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(64, 56, 56),
    "smoke": Sizes(2, 14, 14, dim=32, hidden_dim=128),
    "heldout_1": Sizes(5, 13, 37),
    "heldout_2": Sizes(16, 28, 28),
    "heldout_3": Sizes(8, 56, 56, dim=96, hidden_dim=384),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw x, fc1 and its bias, the normalisation, fc2 and its bias, and eps; the caller seeds.

    Images differ in scale, so that a response taken over the batch or from another image is off.
    """
    sizes = WORKLOADS[workload]
    hidden = sizes.hidden_dim

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, dtype=torch.float32, device=device)

    x = normal(sizes.batch, sizes.height, sizes.width, sizes.dim)
    scale = torch.rand(sizes.batch, 1, 1, 1, dtype=torch.float32, device=device)
    x *= 0.5 + 1.5 * scale
    fc1_weight = linear_weight(hidden, sizes.dim, dtype=torch.float32, device=device)
    fc1_bias = normal(hidden)
    grn_weight, grn_bias = (normal(1, 1, 1, hidden) / hidden**0.5 for _ in range(2))
    fc2_weight = linear_weight(sizes.dim, hidden, dtype=torch.float32, device=device)
    fc2_bias = normal(sizes.dim)
    return [x, fc1_weight, fc1_bias, grn_weight, grn_bias, fc2_weight, fc2_bias, EPS]


@torch.no_grad()
def reference(  # noqa: PLR0913, PLR0917
    x: torch.Tensor,
    fc1_weight: torch.Tensor,
    fc1_bias: torch.Tensor,
    grn_weight: torch.Tensor,
    grn_bias: torch.Tensor,
    fc2_weight: torch.Tensor,
    fc2_bias: torch.Tensor,
    eps: float,
) -> torch.Tensor:
    """Return fc2(grn_weight * (h * response) + grn_bias + h), h = gelu(fc1(x)), GELU exact.

    A channel's norm is the square root of its squares summed over one image; its response is that
    norm divided by the mean norm of the image's channels plus eps.

    Args:
        x: [images, height, width, channels], float32; float64 when the anchor is computed.
        fc1_weight: [inner, channels], the dtype of x.
        fc1_bias: [inner], likewise.
        grn_weight: [1, 1, 1, inner], likewise.
        grn_bias: as grn_weight.
        fc2_weight: [channels, inner], likewise.
        fc2_bias: [channels], likewise.
        eps: added to the mean norm, outside any root.

    Returns:
        The shape and dtype of x; x itself is not added.
    """
    h = gelu_erf(linear(x, fc1_weight, fc1_bias))
    norm = h.square().sum(dim=(1, 2), keepdim=True).sqrt()
    response = norm / (norm.mean(dim=-1, keepdim=True) + eps)
    return linear(grn_weight * (h * response) + grn_bias + h, fc2_weight, fc2_bias)


def bytes_moved() -> int:
    """Return the bytes of the full workload: x, parameters and output once."""
    sizes = WORKLOADS["full"]
    activations = 2 * sizes.batch * sizes.height * sizes.width * sizes.dim
    parameters = 2 * sizes.dim * sizes.hidden_dim + 3 * sizes.hidden_dim + sizes.dim
    return 4 * (activations + parameters)


def flops() -> int:
    """Return the floating-point operations of both products in the full workload."""
    sizes = WORKLOADS["full"]
    return 4 * sizes.batch * sizes.height * sizes.width * sizes.dim * sizes.hidden_dim
