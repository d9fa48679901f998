"""Grouped-query attention whose two products take NVFP4 operands (Qwen3-14B)."""

from dataclasses import dataclass
from typing import Any

import torch

from problems.quantization.nvfp4 import dequantise, quantise
from problems.tolerance import Frobenius, Tolerance

SOURCE = (
    "Own work, re-authored from public model code: the attention of Qwen3, TransformerEngine's"
    " NVFP4 recipe. The workload class is named by SOL-ExecBench."
)

TOLERANCE = Tolerance((Frobenius(5e-2), Frobenius(1e-2)))


@dataclass(frozen=True)
class Sizes:
    """One workload: sequences and their length, a multiple of 16; heads and their width."""

    batch: int
    length: int
    n_heads: int = 40
    n_kv_heads: int = 8
    head_dim: int = 128


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(64, 256),
    "smoke": Sizes(2, 32, n_heads=10, n_kv_heads=2, head_dim=32),
    "heldout_1": Sizes(1, 16),
    "heldout_2": Sizes(3, 592),
    "heldout_3": Sizes(4, 128, n_heads=16, n_kv_heads=2, head_dim=64),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw query, key and value states, and build the causal mask; the seed is the caller's."""
    sizes = WORKLOADS[workload]
    dtype = torch.bfloat16
    states = [
        torch.randn(sizes.batch, heads, sizes.length, sizes.head_dim, dtype=dtype, device=device)
        for heads in (sizes.n_heads, sizes.n_kv_heads, sizes.n_kv_heads)
    ]
    shape = (sizes.batch, 1, sizes.length, sizes.length)
    attention_mask = torch.full(shape, torch.finfo(dtype).min, dtype=dtype, device=device)
    return [*states, attention_mask.triu(1)]


@torch.no_grad()
def reference(
    query_states: torch.Tensor,
    key_states: torch.Tensor,
    value_states: torch.Tensor,
    attention_mask: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (attn_output, attn_weights), both in the dtype of query_states.

    A head's scores are q @ k^T over the square root of its width, plus the mask, normalised by
    rows. Both products take NVFP4 operands, quantised along the axis that is summed over, each
    with a global scale from the largest magnitude of its whole tensor: q and k along the width,
    the weights and v along the keys. Head h reads key-value head h // (heads / kv heads).

    Args:
        query_states: [batch, heads, length, width], bfloat16; float64 when the anchor is computed.
        key_states: [batch, kv heads, length, width], the dtype of query_states.
        value_states: as key_states.
        attention_mask: [batch, 1, length, length], likewise; 0 or the least finite bfloat16.

    Returns:
        attn_output: [batch, heads, length, width].
        attn_weights: [batch, heads, length, length], as they are before they are quantised.
    """
    dtype = query_states.dtype
    scores = _nvfp4_product(query_states, key_states).to(dtype)
    masked = scores * query_states.shape[-1] ** -0.5 + attention_mask
    wide = torch.promote_types(dtype, torch.float32)
    attn_weights = torch.softmax(masked.to(wide), dim=-1).to(dtype)
    attn_output = _nvfp4_product(attn_weights, value_states.transpose(-1, -2))
    return attn_output.to(dtype), attn_weights


def _nvfp4_product(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Return left @ right^T by heads, both through NVFP4; right is shared by groups of heads."""
    wide = torch.promote_types(left.dtype, torch.float32)
    group = left.shape[1] // right.shape[1]
    shared = dequantise(quantise(right), wide).repeat_interleave(group, dim=1)
    return dequantise(quantise(left), wide) @ shared.transpose(-1, -2)


def bytes_moved() -> int:
    """Return the bytes of the full workload: states and mask read, both outputs written."""
    sizes = WORKLOADS["full"]
    n_states = 2 * (sizes.n_heads + sizes.n_kv_heads) * sizes.head_dim
    n_squares = (sizes.n_heads + 1) * sizes.length
    return 2 * sizes.batch * sizes.length * (n_states + n_squares)


def flops() -> int:
    """Return the floating-point operations of both products in the full workload."""
    sizes = WORKLOADS["full"]
    return 2 * 2 * sizes.batch * sizes.n_heads * sizes.length**2 * sizes.head_dim
