"""Project MLA queries up, rotate their tails and the shared key, and cache the latents by pages."""

from dataclasses import dataclass
from typing import Any

import torch

from problems.kv_cache import rotary, slots

SOURCE = (
    "vLLM tests, tests/compile/passes/test_mla_rope_kvcache_cat_fusion.py, at"
    " vllm-project/vllm@b9b6306e; Apache-2.0."
)

MUTATES = (5,)

# The part of a query head that is not rotated; no input's shape tells it.
NOPE_DIM = 128
ROPE_BASE = 10_000.0


@dataclass(frozen=True)
class Sizes:
    """One workload: tokens, the most padding tokens, the cache's blocks, and the geometry."""

    n_tokens: int
    max_pads: int
    n_blocks: int
    n_heads: int = 16
    q_rank: int = 1_536
    kv_rank: int = 512
    rope_dim: int = 64
    block_size: int = 16
    n_positions: int = 4_096


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(2_048, max_pads=128, n_blocks=256),
    "smoke": Sizes(
        37,
        max_pads=8,
        n_blocks=16,
        n_heads=2,
        q_rank=48,
        kv_rank=16,
        rope_dim=8,
        block_size=4,
        n_positions=64,
    ),
    "heldout_1": Sizes(5, max_pads=0, n_blocks=4),
    "heldout_2": Sizes(4_097, max_pads=500, n_blocks=400),
    "heldout_3": Sizes(512, max_pads=64, n_blocks=64, n_heads=32, q_rank=768, kv_rank=256),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw the six inputs of `reference`; the seed is the caller's.

    Slots are distinct and unordered; padding tokens come last.
    """
    sizes = WORKLOADS[workload]

    def bf16(*shape: int) -> torch.Tensor:
        return torch.randn(shape, dtype=torch.bfloat16, device=device)

    entry = sizes.kv_rank + sizes.rope_dim
    qkv_lora = bf16(sizes.n_tokens, sizes.q_rank + entry)
    q_b_weight = 0.02 * bf16(sizes.n_heads * (NOPE_DIM + sizes.rope_dim), sizes.q_rank)
    positions = torch.randint(0, sizes.n_positions, (sizes.n_tokens,), device=device)
    cos_sin_cache = rotary.table(
        sizes.n_positions, width=sizes.rope_dim, base=ROPE_BASE, device=device
    )
    slot_mapping = slots.draw(
        sizes.n_blocks * sizes.block_size,
        n_tokens=sizes.n_tokens,
        max_pads=sizes.max_pads,
        device=device,
    )
    kv_cache = bf16(sizes.n_blocks, sizes.block_size, 1, entry)
    return [qkv_lora, q_b_weight, positions, cos_sin_cache, slot_mapping, kv_cache]


@torch.no_grad()
def reference(
    qkv_lora: torch.Tensor,
    q_b_weight: torch.Tensor,
    positions: torch.Tensor,
    cos_sin_cache: torch.Tensor,
    slot_mapping: torch.Tensor,
    kv_cache: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (q_out, kv_cache); the cache is the very tensor that came in, written in place.

    q_out is computed for every token. Tokens of slot -1 leave the cache alone; the others write
    their latent, as it came, and then the rotated key. Unwritten cells keep every bit.

    Args:
        qkv_lora: [tokens, q rank + kv rank + rope dim], bfloat16; float64 when the anchor is
            computed. The query's latent, the cache's latent, and the key that all heads share.
        q_b_weight: [heads * (128 + rope dim), q rank], the dtype of qkv_lora: head by head, in
            each 128 rows that stay as they are and then those that are rotated.
        positions: [tokens], int64: rows of cos_sin_cache.
        cos_sin_cache: [positions, rope dim], the dtype of qkv_lora: cosines, then sines. Element
            i is rotated together with i + (rope dim) / 2.
        slot_mapping: [tokens], int64: row s mod (block size) of block s // (block size), or -1.
        kv_cache: [blocks, block size, 1, kv rank + rope dim], the dtype of qkv_lora.

    Returns:
        q_out: [tokens, heads, 128 + rope dim], the dtype of qkv_lora.
        kv_cache: as the input.
    """
    rope_dim = cos_sin_cache.shape[-1]
    kv_rank = kv_cache.shape[-1] - rope_dim
    parts = (qkv_lora.shape[-1] - kv_rank - rope_dim, kv_rank, rope_dim)
    q_latent, kv_latent, k_rope = torch.split_with_sizes(qkv_lora, parts, dim=-1)
    cos_sin = cos_sin_cache[positions]

    q = torch.unflatten(q_latent @ q_b_weight.t(), -1, (-1, NOPE_DIM + rope_dim))
    q_nope, q_rope = torch.split_with_sizes(q, (NOPE_DIM, rope_dim), dim=-1)
    q_out = torch.cat((q_nope, rotary.rotate(q_rope, cos_sin)), dim=-1)

    key = rotary.rotate(k_rope.unsqueeze(1), cos_sin)
    slots.append(kv_cache, slot_mapping, torch.cat((kv_latent.unsqueeze(1), key), dim=-1))
    return q_out, kv_cache


def bytes_moved() -> int:
    """Return the most bytes of the full workload: as if no token were padding or shared a row.

    Read are the weight, and of each token its latents, a table row, position and slot; written
    are the queries and the cache's entries.
    """
    sizes = WORKLOADS["full"]
    width, entry = NOPE_DIM + sizes.rope_dim, sizes.kv_rank + sizes.rope_dim
    weight = 2 * sizes.n_heads * width * sizes.q_rank
    read = sizes.q_rank + entry + sizes.rope_dim
    written = sizes.n_heads * width + entry
    return weight + sizes.n_tokens * (2 * (read + written) + 2 * 8)


def flops() -> int:
    """Return the floating-point operations of the projection in the full workload."""
    sizes = WORKLOADS["full"]
    return 2 * sizes.n_tokens * sizes.n_heads * (NOPE_DIM + sizes.rope_dim) * sizes.q_rank
