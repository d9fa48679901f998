"""Bidirectional vision attention block over a packed batch of images (Qwen-Image-Edit 2509)."""

from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import torch

from problems.sequences import pattern

SOURCE = (
    "Own work: re-authored from public model code (the vision tower of Qwen2.5-VL). The workload"
    " class is named by SOL-ExecBench."
)

ROPE_THETA = 10_000.0
# fmt: off
SEQ_SPLITS = (
    255, 85, 425, 170, 680, 85, 170, 340, 85, 510, 170, 255, 85, 340, 170, 425, 85, 255, 170, 85,
    170, 510, 340, 170, 255, 170, 85, 623,
)
# fmt: on


@dataclass(frozen=True)
class Sizes:
    """One workload: tokens of each image, model width and heads."""

    splits: tuple[int, ...]
    width: int = 1_152
    n_heads: int = 16


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(SEQ_SPLITS),
    "smoke": Sizes((12, 4, 20, 8, 28), width=96, n_heads=4),
    "heldout_1": Sizes((1, 7, 64, 65, 1_000, 2_048, 3)),
    "heldout_2": Sizes(pattern(100, step=17, start=0, modulus=120)),
    "heldout_3": Sizes((300, 17, 512, 129), width=1_280),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw hidden_states, cu_seqlens, both projections and the tables; the seed is the caller's."""
    sizes = WORKLOADS[workload]
    width = sizes.width

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, dtype=torch.bfloat16, device=device)

    hidden_states = normal(sum(sizes.splits), width)
    qkv_weight, qkv_bias = normal(3 * width, width) / width**0.5, 0.1 * normal(3 * width)
    proj_weight, proj_bias = normal(width, width) / width**0.5, 0.1 * normal(width)
    ends = torch.tensor(tuple(accumulate(sizes.splits)), dtype=torch.int64, device=device)
    tables = _tables(sizes, device)
    return [hidden_states, ends, qkv_weight, qkv_bias, proj_weight, proj_bias, *tables]


def _tables(sizes: Sizes, device: str) -> list[torch.Tensor]:
    dim = sizes.width // sizes.n_heads
    positions = torch.cat(
        [torch.arange(n, dtype=torch.float32, device=device) for n in sizes.splits]
    )
    half = torch.arange(dim // 2, dtype=torch.float32, device=device)
    frequencies = ROPE_THETA ** (-half / (dim // 2))
    angles = torch.outer(positions, frequencies).repeat(1, 2)
    whole = angles.unsqueeze(1).expand(-1, sizes.n_heads, -1)
    return [table.to(torch.bfloat16).contiguous() for table in (whole.cos(), whole.sin())]


@torch.no_grad()
def reference(  # noqa: PLR0913, PLR0917
    hidden_states: torch.Tensor,
    cu_seqlens: torch.Tensor,
    qkv_weight: torch.Tensor,
    qkv_bias: torch.Tensor,
    proj_weight: torch.Tensor,
    proj_bias: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
) -> torch.Tensor:
    """Return [tokens, width]: each image's tokens attend to all of their own image, none across.

    Rounded to the input dtype: the three projections' output, the rotated queries and keys, the
    logits before and after the factor dim^-0.5, the softmax, and the attended values.

    Args:
        hidden_states: [tokens, width], bfloat16; float64 when the anchor is computed.
        cu_seqlens: [images], int64: where each image ends; the first starts at 0.
        qkv_weight: [3 * width, width], the dtype of hidden_states: query, key, value rows.
        qkv_bias: [3 * width], likewise.
        proj_weight: [width, width], likewise.
        proj_bias: [width], likewise.
        cos: [tokens, heads, dim], likewise; element i turns with i + dim / 2.
        sin: [tokens, heads, dim], likewise.
    """
    dtype = hidden_states.dtype
    wide = torch.promote_types(dtype, torch.float32)
    n_heads, dim = cos.shape[1:]
    qkv = torch.nn.functional.linear(hidden_states, qkv_weight, qkv_bias)
    q, k, v = torch.unflatten(qkv, -1, (3, n_heads, dim)).unbind(1)
    q, k = (_rotate(x.to(wide), cos.to(wide), sin.to(wide)).to(dtype) for x in (q, k))

    attended = torch.empty_like(v)
    for first, end in pairwise((0, *cu_seqlens.tolist())):
        queries, keys, values = (x[first:end].transpose(0, 1) for x in (q, k, v))
        logits = queries @ keys.transpose(-1, -2) * dim**-0.5
        weights = torch.softmax(logits.to(wide), dim=-1).to(dtype)
        attended[first:end] = (weights @ values).transpose(0, 1)
    return torch.nn.functional.linear(attended.flatten(1), proj_weight, proj_bias)


def _rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin


def bytes_moved() -> int:
    """Return the bytes of the full workload: every input and the output once."""
    sizes = WORKLOADS["full"]
    width, n_tokens = sizes.width, sum(sizes.splits)
    weights = 4 * width * (width + 1)
    return 2 * (4 * n_tokens * width + weights) + 8 * len(sizes.splits)


def flops() -> int:
    """Return the operations of the full workload: both projections, and attention per image."""
    sizes = WORKLOADS["full"]
    projections = 2 * sum(sizes.splits) * 4 * sizes.width**2
    return projections + 4 * sizes.width * sum(n * n for n in sizes.splits)
