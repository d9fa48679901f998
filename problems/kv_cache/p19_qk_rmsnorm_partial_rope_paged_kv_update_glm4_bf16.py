"""RMS-normalise Q and K, rotate half of each head, and write K and V to a paged cache (GLM-4.5)."""

from dataclasses import dataclass
from typing import Any

import torch

from problems.kv_cache import rotary, slots

SOURCE = (
    "vLLM tests, tests/compile/passes/test_rocm_aiter_qk_norm_rope_kvcache_fusion.py, at"
    " vllm-project/vllm@b9b6306e; Apache-2.0. Geometry of GLM-4.5."
)

MUTATES = (6,)

ROPE_BASE = 10_000.0


@dataclass(frozen=True)
class Sizes:
    """One workload: tokens, the most padding tokens, the cache's blocks, and the geometry."""

    n_tokens: int
    max_pads: int
    n_blocks: int
    n_heads: int = 32
    n_kv_heads: int = 8
    head_dim: int = 128
    rotary_dim: int = 64
    block_size: int = 16
    n_positions: int = 4_096
    eps: float = 1e-5


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(2_048, max_pads=128, n_blocks=256),
    "smoke": Sizes(
        37,
        max_pads=8,
        n_blocks=16,
        n_heads=4,
        n_kv_heads=2,
        head_dim=16,
        rotary_dim=8,
        block_size=4,
        n_positions=64,
    ),
    "heldout_1": Sizes(1, max_pads=0, n_blocks=64),
    "heldout_2": Sizes(777, max_pads=300, n_blocks=512),
    "heldout_3": Sizes(
        640,
        max_pads=64,
        n_blocks=40,
        n_heads=12,
        n_kv_heads=4,
        head_dim=64,
        rotary_dim=32,
        block_size=32,
        n_positions=1_024,
        eps=1e-6,
    ),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw the eight inputs of `reference`; the seed is the caller's.

    Slots are distinct and unordered; padding tokens come last. Norm weights have both signs.
    """
    sizes = WORKLOADS[workload]

    def bf16(*shape: int) -> torch.Tensor:
        return torch.randn(shape, dtype=torch.bfloat16, device=device)

    n_columns = (sizes.n_heads + 2 * sizes.n_kv_heads) * sizes.head_dim
    qkv = bf16(sizes.n_tokens, n_columns)
    positions = torch.randint(0, sizes.n_positions, (sizes.n_tokens,), device=device)
    q_norm_weight, k_norm_weight = bf16(sizes.head_dim), bf16(sizes.head_dim)
    cos_sin_cache = rotary.table(
        sizes.n_positions, width=sizes.rotary_dim, base=ROPE_BASE, device=device
    )
    slot_mapping = slots.draw(
        sizes.n_blocks * sizes.block_size,
        n_tokens=sizes.n_tokens,
        max_pads=sizes.max_pads,
        device=device,
    )
    kv_cache = bf16(2, sizes.n_blocks, sizes.block_size, sizes.n_kv_heads, sizes.head_dim)
    weights = (q_norm_weight, k_norm_weight)
    return [qkv, positions, *weights, cos_sin_cache, slot_mapping, kv_cache, sizes.eps]


@torch.no_grad()
def reference(  # noqa: PLR0913, PLR0917
    qkv: torch.Tensor,
    positions: torch.Tensor,
    q_norm_weight: torch.Tensor,
    k_norm_weight: torch.Tensor,
    cos_sin_cache: torch.Tensor,
    slot_mapping: torch.Tensor,
    kv_cache: torch.Tensor,
    eps: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (q, kv_cache); the cache is the very tensor that came in, written in place.

    q is computed for every token. Tokens of slot -1 leave the cache alone; the others write their
    rotated K into plane 0 and their V, as it came, into plane 1. Unwritten cells keep every bit.

    Args:
        qkv: [tokens, (heads + 2 kv heads) * dim], bfloat16; float64 when the anchor is computed.
            Q, then K, then V, each head by head.
        positions: [tokens], int64: rows of cos_sin_cache.
        q_norm_weight: [dim], the dtype of qkv.
        k_norm_weight: as q_norm_weight.
        cos_sin_cache: [positions, rotary dim], the dtype of qkv: cosines, then sines. The first
            rotary dim elements of a head are rotated, i together with i + (rotary dim) / 2.
        slot_mapping: [tokens], int64: row s mod (block size) of block s // (block size), or -1.
        kv_cache: [2, blocks, block size, kv heads, dim], the dtype of qkv.
        eps: added to the mean square.

    Returns:
        q: [tokens, heads, dim], the dtype of qkv.
        kv_cache: as the input.
    """
    n_kv_heads, dim = kv_cache.shape[-2:]
    heads = qkv.view(qkv.shape[0], -1, dim)
    n_heads = heads.shape[1] - 2 * n_kv_heads
    q, k, v = torch.split_with_sizes(heads, (n_heads, n_kv_heads, n_kv_heads), dim=1)
    cos_sin = cos_sin_cache[positions]
    q = _rotate_front(_normalise(q, q_norm_weight, eps), cos_sin)
    k = _rotate_front(_normalise(k, k_norm_weight, eps), cos_sin)
    slots.append(kv_cache[0], slot_mapping, k)
    slots.append(kv_cache[1], slot_mapping, v)
    return q, kv_cache


def _normalise(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    """Round the normalised x to the weight's dtype before the weight multiplies it."""
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    inverse = torch.rsqrt(wide.square().mean(dim=-1, keepdim=True) + eps)
    return ((wide * inverse).to(weight.dtype) * weight).to(x.dtype)


def _rotate_front(x: torch.Tensor, cos_sin: torch.Tensor) -> torch.Tensor:
    width = cos_sin.shape[-1]
    return torch.cat((rotary.rotate(x[..., :width], cos_sin), x[..., width:]), dim=-1)


def bytes_moved() -> int:
    """Return the most bytes of the full workload: as if no token were padding or shared a row.

    Read are qkv, a table row, position and slot of each token; written are q, K and V. The two
    norm weights, 512 bytes, are left out.
    """
    sizes = WORKLOADS["full"]
    n_kv = 2 * sizes.n_kv_heads
    read = (sizes.n_heads + n_kv) * sizes.head_dim + sizes.rotary_dim
    written = (sizes.n_heads + n_kv) * sizes.head_dim
    return sizes.n_tokens * (2 * (read + written) + 2 * 8)


def flops() -> int:
    """Return the operations of the full workload: five to normalise an element, three to rotate."""
    sizes = WORKLOADS["full"]
    per_head = 5 * sizes.head_dim + 3 * sizes.rotary_dim
    return sizes.n_tokens * (sizes.n_heads + sizes.n_kv_heads) * per_head
