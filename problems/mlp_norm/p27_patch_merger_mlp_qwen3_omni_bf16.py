"""Normalise vision patches, merge 2x2 neighbours into one row, and run a GELU MLP (Qwen3-Omni)."""

from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import linear

from problems.mlp_norm.activations import gelu_erf
from problems.mlp_norm.draws import linear_weight
from problems.mlp_norm.norms import layer_norm

SOURCE = (
    "Own work, re-authored from public model code: the patch merger of Qwen3-Omni's vision tower."
    " The workload class is named by SOL-ExecBench."
)

MERGE_SIZE = 2
EPS = 1e-6


@dataclass(frozen=True)
class Sizes:
    """One workload: frames, rows and columns of each grid; widths of a patch and of the output."""

    grids: tuple[tuple[int, int, int], ...]
    hidden_size: int = 1_536
    out_hidden_size: int = 3_584

    @property
    def n_patches(self) -> int:
        """Patches of all grids."""
        return sum(frames * height * width for frames, height, width in self.grids)

    @property
    def merged_size(self) -> int:
        """Width of a merged row, and of the MLP's hidden layer."""
        return MERGE_SIZE * MERGE_SIZE * self.hidden_size


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(((1, 64, 64),) * 8),
    "smoke": Sizes(
        ((1, 8, 8), (2, 4, 8), (1, 4, 12), (1, 8, 10)), hidden_size=96, out_hidden_size=224
    ),
    "heldout_1": Sizes(((1, 64, 96), (4, 16, 32), (1, 2, 2), (2, 30, 50))),
    "heldout_2": Sizes(((1, 128, 130),)),
    "heldout_3": Sizes(((1, 32, 32), (2, 16, 24)), hidden_size=1_024, out_hidden_size=2_048),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw hidden, grid_thw, the norm, both layers with biases, and eps; the seed is the caller's.

    Each patch has a mean of its own, so that a norm that forgets the mean is far off.
    """
    sizes = WORKLOADS[workload]

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, dtype=torch.bfloat16, device=device)

    def weight(n_out: int) -> torch.Tensor:
        return linear_weight(n_out, sizes.merged_size, dtype=torch.bfloat16, device=device)

    hidden = normal(sizes.n_patches, sizes.hidden_size)
    hidden += 0.5 * normal(sizes.n_patches, 1)
    grid_thw = torch.tensor(sizes.grids, dtype=torch.int64, device=device)
    ln_weight, ln_bias = 1 + 0.1 * normal(sizes.hidden_size), 0.1 * normal(sizes.hidden_size)
    fc1_weight, fc1_bias = weight(sizes.merged_size), 0.1 * normal(sizes.merged_size)
    fc2_weight, fc2_bias = weight(sizes.out_hidden_size), 0.1 * normal(sizes.out_hidden_size)
    norm, fc1, fc2 = (ln_weight, ln_bias), (fc1_weight, fc1_bias), (fc2_weight, fc2_bias)
    return [hidden, grid_thw, *norm, *fc1, *fc2, EPS]


@torch.no_grad()
def reference(  # noqa: PLR0913, PLR0917
    hidden: torch.Tensor,
    grid_thw: torch.Tensor,
    ln_weight: torch.Tensor,
    ln_bias: torch.Tensor,
    fc1_weight: torch.Tensor,
    fc1_bias: torch.Tensor,
    fc2_weight: torch.Tensor,
    fc2_bias: torch.Tensor,
    eps: float,
) -> torch.Tensor:
    """Return fc2(gelu(fc1(merged))), merged being the normalised patches of each 2x2 block in turn.

    The norm is computed in float32, bias included, and rounded once; the product with fc1_weight,
    GELU (its exact form) and the product with fc2_weight round once each. The grids are read on
    the host, for they decide the shapes of the gather.

    Args:
        hidden: [patches, width], bfloat16; float64 when the anchor is computed. The patches of a
            grid follow those of the grid before it, frame by frame and row by row.
        grid_thw: [grids, 3], int64: frames, rows and columns of each grid; rows and columns even.
        ln_weight: [width], the dtype of hidden.
        ln_bias: as ln_weight.
        fc1_weight: [4 width, 4 width], likewise.
        fc1_bias: [4 width], likewise.
        fc2_weight: [outputs, 4 width], likewise.
        fc2_bias: [outputs], likewise.
        eps: what the norm adds to the variance.

    Returns:
        [patches / 4, outputs] in the dtype of hidden.
    """
    wide = torch.promote_types(hidden.dtype, torch.float32)
    normalized = layer_norm(hidden.to(wide), eps) * ln_weight.to(wide) + ln_bias.to(wide)
    merged = _merge(normalized.to(hidden.dtype), grid_thw.tolist())
    return linear(gelu_erf(linear(merged, fc1_weight, fc1_bias)), fc2_weight, fc2_bias)


def _merge(patches: torch.Tensor, grids: list[list[int]]) -> torch.Tensor:
    """Return [blocks, 4 width]: upper left, upper right, lower left and lower right patch."""
    sizes = [frames * height * width for frames, height, width in grids]
    merged = []
    for rows, (frames, height, width) in zip(patches.split_with_sizes(sizes), grids, strict=True):
        blocks = rows.view(
            frames, height // MERGE_SIZE, MERGE_SIZE, width // MERGE_SIZE, MERGE_SIZE, -1
        )
        n_blocks = frames * (height // MERGE_SIZE) * (width // MERGE_SIZE)
        merged.append(blocks.transpose(2, 3).reshape(n_blocks, -1))
    return torch.cat(merged)


def bytes_moved() -> int:
    """Return the bytes of the full workload: patches, grids, parameters and output once."""
    sizes = WORKLOADS["full"]
    merged, out = sizes.merged_size, sizes.out_hidden_size
    rows = sizes.n_patches // MERGE_SIZE**2
    parameters = 2 * sizes.hidden_size + (merged + out) * (merged + 1)
    activations = sizes.n_patches * sizes.hidden_size + rows * out
    return 2 * (parameters + activations) + 8 * 3 * len(sizes.grids)


def flops() -> int:
    """Return the floating-point operations of both products in the full workload."""
    sizes = WORKLOADS["full"]
    rows = sizes.n_patches // MERGE_SIZE**2
    return 2 * rows * sizes.merged_size * (sizes.merged_size + sizes.out_hidden_size)
