"""Append K and V to paged FP8 caches, each with its own scale for every token and head."""

from dataclasses import dataclass
from typing import Any

import torch

from problems.kv_cache import e4m3, slots
from problems.tolerance import CodeSteps, Relative, Tolerance

SOURCE = (
    "vLLM tests, tests/quantization/test_per_token_kv_cache.py, reshape-and-cache op, at"
    " vllm-project/vllm@b9b6306e; Apache-2.0."
)

TOLERANCE = Tolerance((CodeSteps(2e-3), CodeSteps(2e-3), Relative(5e-7), Relative(5e-7)))
MUTATES = (3, 4, 5, 6)

SCALE_FLOOR = 1e-6


@dataclass(frozen=True)
class Sizes:
    """One workload; `special` makes token 0 all zero and token 1 of one magnitude, 0.75."""

    n_tokens: int
    max_pads: int
    n_blocks: int
    n_heads: int = 8
    head_dim: int = 128
    block_size: int = 16
    special: bool = False


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(2_048, max_pads=128, n_blocks=256),
    "smoke": Sizes(37, max_pads=8, n_blocks=16, n_heads=2, head_dim=16, block_size=4),
    "heldout_1": Sizes(3, max_pads=0, n_blocks=4, special=True),
    "heldout_2": Sizes(5_000, max_pads=700, n_blocks=400),
    "heldout_3": Sizes(777, max_pads=64, n_blocks=64, n_heads=4, head_dim=256, block_size=32),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw the seven inputs of `reference`; the seed is the caller's.

    Slots are distinct and unordered; padding tokens come last. The caches hold arbitrary bytes,
    codes of NaN among them.
    """
    sizes = WORKLOADS[workload]
    rows = (sizes.n_heads, sizes.head_dim)
    pool = (sizes.n_blocks, sizes.block_size)
    key, value = (
        torch.randn(sizes.n_tokens, *rows, dtype=torch.bfloat16, device=device) for _ in range(2)
    )
    if sizes.special:
        for tensor in (key, value):
            tensor[0] = 0
            tensor[1] = torch.where(tensor[1] < 0, -0.75, 0.75)
    slot_mapping = slots.draw(
        sizes.n_blocks * sizes.block_size,
        n_tokens=sizes.n_tokens,
        max_pads=sizes.max_pads,
        device=device,
    )
    caches = [
        torch.randint(0, 256, pool + rows, dtype=torch.uint8, device=device) for _ in range(2)
    ]
    scales = [0.5 + torch.rand(*pool, sizes.n_heads, device=device) for _ in range(2)]
    return [key, value, slot_mapping, *caches, *scales]


@torch.no_grad()
def reference(  # noqa: PLR0913, PLR0917
    key: torch.Tensor,
    value: torch.Tensor,
    slot_mapping: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    k_scale_cache: torch.Tensor,
    v_scale_cache: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return (key_cache, value_cache, k_scale_cache, v_scale_cache), the very tensors given.

    They are written in place. A scale is the row's largest magnitude over 448, at least 1e-6; a
    code is x times the scale's reciprocal, held within +-448 and rounded to float8_e4m3fn.
    Tokens of slot -1 write nothing; unwritten cells keep every bit.

    Args:
        key: [tokens, heads, dim], bfloat16; float64 when the anchor is computed.
        value: as key.
        slot_mapping: [tokens], int64: row s mod (block size) of block s // (block size), or -1.
        key_cache: [blocks, block size, heads, dim], uint8.
        value_cache: as key_cache.
        k_scale_cache: [blocks, block size, heads], float32 (float64 in the anchor).
        v_scale_cache: as k_scale_cache.
    """
    _append(key, slot_mapping, key_cache, k_scale_cache)
    _append(value, slot_mapping, value_cache, v_scale_cache)
    return key_cache, value_cache, k_scale_cache, v_scale_cache


def _append(
    rows: torch.Tensor, slot_mapping: torch.Tensor, cache: torch.Tensor, scale_cache: torch.Tensor
) -> None:
    wide = rows.to(torch.promote_types(rows.dtype, torch.float32))
    scales = (wide.abs().amax(dim=-1) / e4m3.MAX).clamp(min=SCALE_FLOOR)
    scaled = wide * scales.reciprocal().unsqueeze(-1)
    slots.append(cache, slot_mapping, e4m3.encode(scaled.clamp(-e4m3.MAX, e4m3.MAX)))
    slots.append(scale_cache, slot_mapping, scales)


def bytes_moved() -> int:
    """Return the most bytes of the full workload, as if no token were padding.

    Read are key, value and slot of each token; written are their codes and scales.
    """
    sizes = WORKLOADS["full"]
    read = 2 * 2 * sizes.n_heads * sizes.head_dim + 8
    written = 2 * sizes.n_heads * (sizes.head_dim + 4)
    return sizes.n_tokens * (read + written)


def flops() -> int:
    """Return the operations of the full workload: four per element, all of them elementwise."""
    sizes = WORKLOADS["full"]
    return 4 * 2 * sizes.n_tokens * sizes.n_heads * sizes.head_dim
