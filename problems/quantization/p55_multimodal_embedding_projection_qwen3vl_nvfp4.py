"""Text embeddings with vision features spliced in, through an NVFP4 projection (Qwen3-VL)."""

from dataclasses import dataclass
from typing import Any

import torch

from problems.quantization.nvfp4 import BLOCK, from_parts, product, quantise, to_parts
from problems.tolerance import Frobenius, Tolerance

SOURCE = (
    "Own work, re-authored from public model code: the embedding of Qwen3-VL, TransformerEngine's"
    " NVFP4 recipe. The workload class is named by SOL-ExecBench."
)

TOLERANCE = Tolerance((Frobenius(1e-2),))

OUTLIER = 1e5


@dataclass(frozen=True)
class Sizes:
    """One workload: sequences and their length, vision rows per sequence, widths, vocabulary.

    `n_places` says how many positions of each sequence are marked, where that is not n_vision.
    With `outlier` one vision feature is huge and meets a weight of zero, so that it moves the
    global scale alone.
    """

    batch: int
    length: int
    n_vision: int
    hidden: int = 8_192
    vision_hidden: int = 3_584
    vocabulary: int = 151_936
    n_places: tuple[int, ...] = ()
    outlier: bool = False


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(32, 1_024, 384),
    "smoke": Sizes(2, 32, 12, hidden=256, vision_hidden=128, vocabulary=512),
    "heldout_1": Sizes(1, 100, 30),
    "heldout_2": Sizes(4, 300, 64, n_places=(59, 64, 69, 0), outlier=True),
    "heldout_3": Sizes(8, 512, 128, hidden=4_096, vision_hidden=2_048, vocabulary=32_000),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw ids, table, vision features, the weight's three parts, bias and mask; caller seeds."""
    sizes = WORKLOADS[workload]
    dtype = torch.bfloat16
    shape = (sizes.batch, sizes.length)
    input_ids = torch.randint(sizes.vocabulary, shape, device=device)
    embedding = torch.randn(sizes.vocabulary, sizes.hidden, dtype=dtype, device=device)
    vision_shape = (sizes.batch, sizes.n_vision, sizes.vision_hidden)
    vision_features = torch.randn(vision_shape, dtype=dtype, device=device)
    weight_shape = (1, sizes.hidden, sizes.vision_hidden)
    weight = torch.randn(weight_shape, dtype=torch.float32, device=device)
    weight /= sizes.vision_hidden**0.5
    if sizes.outlier:
        vision_features[0, 0, 0] = OUTLIER
        weight[:, :, 0] = 0
    bias = torch.randn(sizes.hidden, dtype=dtype, device=device)
    n_places = torch.full((sizes.batch, 1), sizes.n_vision, device=device)
    for row, count in enumerate(sizes.n_places):
        n_places[row] = count
    # Each row of the argsort is a random permutation.
    vision_token_mask = torch.rand(shape, device=device).argsort(dim=-1) < n_places
    parts = to_parts(quantise(weight))
    return [input_ids, embedding, vision_features, *parts, bias, vision_token_mask]


@torch.no_grad()
def reference(  # noqa: PLR0913, PLR0917
    input_ids: torch.Tensor,
    embedding: torch.Tensor,
    vision_features: torch.Tensor,
    vision_weight: torch.Tensor,
    vision_weight_scale: torch.Tensor,
    vision_weight_global_scale: float,
    vision_proj_bias: torch.Tensor,
    vision_token_mask: torch.Tensor,
) -> torch.Tensor:
    """Return the sequences' embeddings, [batch, length, width], in the dtype of the table.

    A sequence's marked positions, in order, receive the rows of its projected vision features.
    Marked positions beyond the last row keep the text's embedding; rows without a position are
    not used. The projection is rounded, then the bias added and rounded again.

    Args:
        input_ids: [batch, length], int64.
        embedding: [vocabulary, width], bfloat16; float64 when the anchor is computed.
        vision_features: [batch, n_vision, vision_width], the dtype of the table; quantised to
            NVFP4 with one global scale for all of it.
        vision_weight: [1, width, vision_width / 2], uint8, element 2j of a row in the low nibble
            of byte j.
        vision_weight_scale: [1, width, vision_width / 16], float8_e4m3fn.
        vision_weight_global_scale: the factor that decodes the scales.
        vision_proj_bias: [width], the dtype of the table.
        vision_token_mask: [batch, length], bool.
    """
    wide = torch.promote_types(vision_features.dtype, torch.float32)
    weight = from_parts(vision_weight, vision_weight_scale, vision_weight_global_scale)
    projected = product(quantise(vision_features), weight, wide).to(vision_features.dtype)
    projected += vision_proj_bias
    n_vision = vision_features.shape[1]
    # How many marked positions precede this one: the row that belongs here.
    row = vision_token_mask.long().cumsum(dim=-1) - vision_token_mask.long()
    taken = vision_token_mask & (row < n_vision)
    rows = row.clamp(max=n_vision - 1).unsqueeze(-1).expand(-1, -1, projected.shape[-1])
    return torch.where(taken.unsqueeze(-1), projected.gather(1, rows), embedding[input_ids])


def bytes_moved() -> int:
    """Return the bytes of the full workload: of the table only the rows of unmarked positions."""
    sizes = WORKLOADS["full"]
    n_positions = sizes.batch * sizes.length
    n_text = n_positions - sizes.batch * sizes.n_vision
    vision = 2 * sizes.batch * sizes.n_vision * sizes.vision_hidden
    weight = sizes.hidden * (sizes.vision_hidden // 2 + sizes.vision_hidden // BLOCK)
    rows = 2 * sizes.hidden * (n_text + n_positions + 1)
    return rows + vision + weight + (8 + 1) * n_positions


def flops() -> int:
    """Return the floating-point operations of the projection in the full workload."""
    sizes = WORKLOADS["full"]
    return 2 * sizes.batch * sizes.n_vision * sizes.vision_hidden * sizes.hidden
