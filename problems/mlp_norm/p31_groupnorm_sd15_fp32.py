"""Group normalisation of channels-first feature maps, channels scaled (Stable Diffusion 1.5)."""

from dataclasses import dataclass
from typing import Any

import torch

from problems.mlp_norm.norms import layer_norm

SOURCE = (
    "Own work, re-authored from public model code: a group norm of Stable Diffusion 1.5's U-Net."
    " The workload class is named by SOL-ExecBench."
)

NUM_GROUPS = 32
EPS = 1e-5


@dataclass(frozen=True)
class Sizes:
    """One workload: images, channels, height, width, and what is added to every value."""

    batch: int
    channels: int
    height: int
    width: int
    offset: float = 0.0


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(32, 1_280, 8, 8),
    "smoke": Sizes(2, 320, 8, 8),
    "smoke_2": Sizes(2, 320, 8, 8, offset=100.0),
    "heldout_1": Sizes(1, 320, 64, 64),
    "heldout_2": Sizes(3, 640, 17, 9, offset=100.0),
    "heldout_3": Sizes(16, 1_920, 16, 16),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw x, weight, bias and eps; the seed is the caller's."""
    sizes = WORKLOADS[workload]
    shape = (sizes.batch, sizes.channels, sizes.height, sizes.width)
    x = torch.randn(shape, dtype=torch.float32, device=device)
    if sizes.offset:
        x += sizes.offset
    weight = 1 + 0.1 * torch.randn(sizes.channels, dtype=torch.float32, device=device)
    bias = 0.1 * torch.randn(sizes.channels, dtype=torch.float32, device=device)
    return [x, weight, bias, EPS]


@torch.no_grad()
def reference(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float
) -> torch.Tensor:
    """Return (x - mean) / sqrt(biased variance + eps) * weight + bias, over 32 groups of channels.

    A group is a run of channels / 32 neighbours; its mean and variance are taken over the whole
    image, its weights and biases channel by channel.

    Args:
        x: [images, channels, height, width], float32; float64 when the anchor is computed.
        weight: [channels], the dtype of x.
        bias: as weight.
        eps: added to the variance, inside the root.

    Returns:
        The shape and dtype of x.
    """
    wide = torch.promote_types(x.dtype, torch.float32)
    groups = x.to(wide).reshape(x.shape[0], NUM_GROUPS, -1)
    normalized = layer_norm(groups, eps).view(x.shape)
    scaled = normalized * weight.to(wide)[:, None, None] + bias.to(wide)[:, None, None]
    return scaled.to(x.dtype)


def bytes_moved() -> int:
    """Return the bytes of the full workload: maps read and written, weight and bias once."""
    sizes = WORKLOADS["full"]
    pixels = sizes.height * sizes.width
    return 4 * sizes.channels * (2 * sizes.batch * pixels + 2)


def flops() -> int:
    """Return the operations of the full workload: ten per element, all of them elementwise."""
    sizes = WORKLOADS["full"]
    return 10 * sizes.batch * sizes.channels * sizes.height * sizes.width
