"""Gated delta rule prefill over ragged packed sequences with float32 states (Qwen3-Next)."""

from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional

from problems.linear_attention import delta_rule, draws
from problems.linear_attention.gated_delta import Gates
from problems.sequences import offsets, pattern

SOURCE = (
    "FlashInfer-Trace/Bench, definition gdn_prefill_qk8_v16_d128_k_last, record"
    " 1a9da4c9-224e-4bfa-b221-fe1939ca5527; Apache-2.0. Qwen3-Next 80B-A3B, one of 2"
    " tensor-parallel ranks. Offsets and gate constants as captured, values redrawn."
)

# fmt: off
A_LOG = (
    1.3984375, 1.203125, 2.203125, 0.1474609375, 1.46875, -0.6171875, 1.8125, -1.359375,
    0.50390625, 1.03125, 2.953125, 1.2890625, 1.3203125, 2.109375, 3.34375, 1.78125,
)
DT_BIAS = (
    -2.34375, -3.421875, -4.03125, -1.65625, -3.25, 2.046875, -5.625, -2.65625,
    -2.375, -2.984375, -2.328125, -4.09375, -4.25, -3.71875, -4.96875, -3.578125,
)
# fmt: on


@dataclass(frozen=True)
class Sizes:
    """One workload: sequence lengths, query (and key) heads, value heads, width, output factor."""

    lengths: tuple[int, ...]
    n_query_heads: int = 8
    n_value_heads: int = 16
    dim: int = 128
    scale: float = 0.08838834764831843


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes((19, 31, 890, 19)),
    "smoke": Sizes((5, 4, 51, 5), n_query_heads=2, n_value_heads=4, dim=32, scale=32**-0.5),
    "heldout_1": Sizes((1, 63, 1, 235, 2_000)),
    "heldout_2": Sizes(pattern(64, step=5, start=0, modulus=40)),
    "heldout_3": Sizes((300, 17), n_query_heads=4),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw q, k, v, state, A_log, a, dt_bias, b, cu_seqlens and scale; the seed is the caller's.

    Queries and keys have unit length before they are rounded.
    """
    sizes = WORKLOADS[workload]
    heads, dim, n_tokens = sizes.n_value_heads, sizes.dim, sum(sizes.lengths)
    q, k = (
        functional.normalize(
            torch.randn(n_tokens, sizes.n_query_heads, dim, dtype=torch.float32, device=device),
            dim=-1,
        ).to(torch.bfloat16)
        for _ in range(2)
    )
    v = 0.041 * draws.normal((n_tokens, heads, dim), device)
    shape = (len(sizes.lengths), heads, dim, dim)
    state = dim**-0.5 * torch.randn(shape, dtype=torch.float32, device=device)
    a_log = torch.tensor(A_LOG[:heads], dtype=torch.float32, device=device)
    a = draws.rounded_normal(-0.12, 1.26, shape=(n_tokens, heads), device=device)
    dt_bias = torch.tensor(DT_BIAS[:heads], dtype=torch.float32, device=device)
    b = draws.rounded_normal(1.47, 2.01, shape=(n_tokens, heads), device=device)
    cu_seqlens = torch.tensor(offsets(sizes.lengths), dtype=torch.int64, device=device)
    return [q, k, v, state, a_log, a, dt_bias, b, cu_seqlens, sizes.scale]


@torch.no_grad()
def reference(  # noqa: PLR0913, PLR0917
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    state: torch.Tensor,
    A_log: torch.Tensor,
    a: torch.Tensor,
    dt_bias: torch.Tensor,
    b: torch.Tensor,
    cu_seqlens: torch.Tensor,
    scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (output, new_state) after all tokens of each sequence; the given state stays.

    All tokens are handled as one flat list, so that no length crosses to the host. Per token the
    state decays by exp(-exp(A_log) * softplus(a + dt_bias)); what it holds under the key k moves
    towards v by the share sigmoid(b); the output reads it at q. Keys are not normalised.

    Args:
        q: [tokens, query heads, dim], bfloat16; float64 when the anchor is computed.
        k: as q. Value head h uses query and key head h // (value heads / query heads).
        v: [tokens, value heads, dim], the dtype of q.
        state: [sequences, value heads, value dim, key dim], float32: the key axis is the fastest.
        A_log: [value heads], float32.
        a: [tokens, value heads], the dtype of q.
        dt_bias: [value heads], float32.
        b: as a.
        cu_seqlens: [sequences + 1], int64: where each sequence's tokens begin.
        scale: factor of the output.

    Returns:
        output: [tokens, value heads, dim] in the dtype of q.
        new_state: the shape of state, in float32 (float64 in the anchor); fresh storage.
    """
    wide = torch.promote_types(q.dtype, torch.float32)
    gates = Gates(A_log, a, dt_bias, b)
    group = v.shape[1] // q.shape[1]
    query, key = (x.to(wide).repeat_interleave(group, dim=1) for x in (q, k))
    value, share, decay = v.to(wide), gates.share(wide), gates.decay(wide).unsqueeze(-1)
    tokens = torch.arange(q.shape[0], dtype=cu_seqlens.dtype, device=q.device)
    owner = torch.searchsorted(cu_seqlens[1:], tokens, right=True)

    new_state = state.to(wide, copy=True)
    output = torch.empty_like(value)
    for t in range(q.shape[0]):
        sequence = owner[t : t + 1]
        held = delta_rule.step(
            new_state.index_select(0, sequence),
            key=key[t],
            value=value[t],
            share=share[t],
            decay=decay[t],
        )
        new_state.index_copy_(0, sequence, held)
        output[t] = scale * delta_rule.read(held, query[t]).squeeze(0)
    return output.to(q.dtype), new_state


def bytes_moved() -> int:
    """Return the bytes of the full workload: states read and written, the rest once."""
    sizes = WORKLOADS["full"]
    heads, dim = sizes.n_value_heads, sizes.dim
    states = 2 * 4 * len(sizes.lengths) * heads * dim * dim
    token = 2 * (2 * sizes.n_query_heads + 2 * heads) * dim + 2 * 2 * heads
    return states + sum(sizes.lengths) * token + 2 * 4 * heads + 8 * (len(sizes.lengths) + 1)


def flops() -> int:
    """Return the operations of the full workload: 7 per state element and token, recurrent."""
    sizes = WORKLOADS["full"]
    return 7 * sum(sizes.lengths) * sizes.n_value_heads * sizes.dim * sizes.dim
