"""Normalise and rotate main and indexer heads, and insert into two caches (MiniMax-M3)."""

from dataclasses import dataclass
from typing import Any

import torch

from problems.kv_cache import rotary, slots

SOURCE = (
    "vLLM tests, tests/kernels/test_fused_minimax_m3_qknorm_rope_kv_insert.py, at"
    " vllm-project/vllm@b9b6306e; Apache-2.0."
)

MUTATES = (9, 10)

# How the query heads divide; no input's shape tells it.
MAIN_HEADS = 16
INDEX_HEADS = 4
EPS = 1e-6
ROPE_BASE = 5_000_000.0


@dataclass(frozen=True)
class Sizes:
    """One workload: tokens, blocks of each cache, and the geometry; one index key per token."""

    n_tokens: int
    n_blocks: int
    n_kv_heads: int = 4
    head_dim: int = 128
    rotary_dim: int = 64
    block_size: int = 64
    n_positions: int = 4_096


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(513, n_blocks=10),
    "smoke": Sizes(
        33, n_blocks=6, n_kv_heads=2, head_dim=16, rotary_dim=8, block_size=8, n_positions=64
    ),
    "heldout_1": Sizes(1, n_blocks=10),
    "heldout_2": Sizes(1_500, n_blocks=32),
    "heldout_3": Sizes(600, n_blocks=64, n_kv_heads=2, block_size=16),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw the eleven inputs of `reference`; the seed is the caller's.

    Slots are distinct and unordered, the two mappings independent; there is no padding.
    """
    sizes = WORKLOADS[workload]

    def bf16(*shape: int) -> torch.Tensor:
        return torch.randn(shape, dtype=torch.bfloat16, device=device)

    n_heads = MAIN_HEADS + 2 * sizes.n_kv_heads + INDEX_HEADS + 1
    qkv = bf16(sizes.n_tokens, n_heads * sizes.head_dim)
    weights = [0.1 * bf16(sizes.head_dim) for _ in range(4)]
    positions = torch.randint(0, sizes.n_positions, (sizes.n_tokens,), device=device)
    cos_sin_cache = rotary.table(
        sizes.n_positions, width=sizes.rotary_dim, base=ROPE_BASE, device=device
    )
    n_slots = sizes.n_blocks * sizes.block_size
    mappings = [
        slots.draw(n_slots, n_tokens=sizes.n_tokens, max_pads=0, device=device) for _ in range(2)
    ]
    kv_cache = bf16(sizes.n_blocks, sizes.n_kv_heads, sizes.block_size, 2 * sizes.head_dim)
    index_cache = bf16(sizes.n_blocks, sizes.block_size, sizes.head_dim)
    return [qkv, *weights, positions, cos_sin_cache, *mappings, kv_cache, index_cache]


@torch.no_grad()
def reference(  # noqa: PLR0913, PLR0917
    qkv: torch.Tensor,
    q_norm_weight: torch.Tensor,
    k_norm_weight: torch.Tensor,
    index_q_norm_weight: torch.Tensor,
    index_k_norm_weight: torch.Tensor,
    positions: torch.Tensor,
    cos_sin_cache: torch.Tensor,
    slot_mapping: torch.Tensor,
    index_slot_mapping: torch.Tensor,
    kv_cache: torch.Tensor,
    index_cache: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return (q, index_q, kv_cache, index_cache); the caches are the very tensors that came in.

    Both are written in place; unwritten cells keep every bit, and V is written as it came.
    Every other head is normalised to x / rms(x) * (1 + weight) and then rotated in part.

    Args:
        qkv: [tokens, (16 + 2 kv heads + 4 + 1) * dim], bfloat16; float64 when the anchor is
            computed. 16 Q, K, V, 4 index Q and 1 index K, each head by head.
        q_norm_weight: [dim], the dtype of qkv; likewise the next three.
        positions: [tokens], int64: rows of cos_sin_cache.
        cos_sin_cache: [positions, rotary dim], the dtype of qkv: cosines, then sines. The first
            rotary dim elements of a head are rotated, i together with i + (rotary dim) / 2.
        slot_mapping: [tokens], int64: row s mod (block size) of block s // (block size).
        index_slot_mapping: likewise, for index_cache.
        kv_cache: [blocks, kv heads, block size, 2 dim], the dtype of qkv: K, then V.
        index_cache: [blocks, block size, dim], the dtype of qkv.

    Returns:
        q: [tokens, 16, dim], the dtype of qkv.
        index_q: [tokens, 4, dim], the dtype of qkv.
        kv_cache: as the input.
        index_cache: as the input.
    """
    n_kv_heads, dim = kv_cache.shape[1], index_cache.shape[-1]
    parts = (MAIN_HEADS, n_kv_heads, n_kv_heads, INDEX_HEADS, 1)
    q, k, v, index_q, index_k = torch.split_with_sizes(
        qkv.view(qkv.shape[0], -1, dim), parts, dim=1
    )
    cos_sin = cos_sin_cache[positions]
    q = _prepare(q, q_norm_weight, cos_sin)
    k = _prepare(k, k_norm_weight, cos_sin)
    index_q = _prepare(index_q, index_q_norm_weight, cos_sin)
    index_k = _prepare(index_k, index_k_norm_weight, cos_sin)
    slots.append(kv_cache.transpose(1, 2), slot_mapping, torch.cat((k, v), dim=-1))
    slots.append(index_cache, index_slot_mapping, index_k.squeeze(1))
    return q, index_q, kv_cache, index_cache


def _prepare(x: torch.Tensor, weight: torch.Tensor, cos_sin: torch.Tensor) -> torch.Tensor:
    """Normalise and round, then rotate the front in the wide dtype and round again."""
    wide = torch.promote_types(x.dtype, torch.float32)
    rows = x.to(wide)
    inverse = torch.rsqrt(rows.square().mean(dim=-1, keepdim=True) + EPS)
    normed = (rows * inverse * (1 + weight.to(wide))).to(x.dtype)
    width = cos_sin.shape[-1]
    front = rotary.rotate(normed[..., :width].to(wide), cos_sin).to(x.dtype)
    return torch.cat((front, normed[..., width:]), dim=-1)


def bytes_moved() -> int:
    """Return the bytes of the full workload, as if no two tokens shared a row of the table.

    Read are the weights, and of each token its heads, a table row, position and two slots; as
    many bytes as the heads have are written.
    """
    sizes = WORKLOADS["full"]
    heads = (MAIN_HEADS + 2 * sizes.n_kv_heads + INDEX_HEADS + 1) * sizes.head_dim
    weights = 4 * 2 * sizes.head_dim
    return weights + sizes.n_tokens * (2 * (2 * heads + sizes.rotary_dim) + 3 * 8)


def flops() -> int:
    """Return the operations of the full workload: five to normalise an element, three to rotate."""
    sizes = WORKLOADS["full"]
    n_heads = MAIN_HEADS + sizes.n_kv_heads + INDEX_HEADS + 1
    return sizes.n_tokens * n_heads * (5 * sizes.head_dim + 3 * sizes.rotary_dim)
