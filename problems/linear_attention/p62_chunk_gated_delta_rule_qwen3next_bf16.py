"""Chunk-parallel gated delta rule on unit-length queries and keys (Qwen3-Next)."""

from dataclasses import dataclass
from typing import Any

import torch

from problems.linear_attention import chunks, draws

SOURCE = (
    "Own work, re-authored from public model code: the chunked gated delta rule of Qwen3-Next."
    " The workload class is named by SOL-ExecBench."
)

CHUNK = 64
NORM_EPS = 1e-6


@dataclass(frozen=True)
class Sizes:
    """One workload: batch, tokens, key (and query) heads, value heads, widths, output factor."""

    batch: int
    n_tokens: int
    n_key_heads: int = 4
    n_value_heads: int = 16
    key_dim: int = 128
    value_dim: int = 128
    scale: float = 0.08838834764831845


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(16, 256),
    "smoke": Sizes(
        2, 160, n_key_heads=2, n_value_heads=4, key_dim=32, value_dim=32, scale=32**-0.5
    ),
    "heldout_1": Sizes(2, 1_000),
    "heldout_2": Sizes(3, 77),
    "heldout_3": Sizes(4, 512, n_key_heads=8, n_value_heads=8, key_dim=64, scale=0.125),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw query, key, value, g, beta and scale; the seed is the caller's."""
    sizes = WORKLOADS[workload]
    keys = (sizes.batch, sizes.n_key_heads, sizes.n_tokens, sizes.key_dim)
    rows = (sizes.batch, sizes.n_value_heads, sizes.n_tokens)
    query, key = (draws.normal(keys, device) for _ in range(2))
    value = draws.normal((*rows, sizes.value_dim), device)
    g = draws.uniform(-0.05, 0.0, shape=rows, device=device)
    return [query, key, value, g, draws.shares(rows, device), sizes.scale]


@torch.no_grad()
def reference(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    g: torch.Tensor,
    beta: torch.Tensor,
    scale: float,
) -> torch.Tensor:
    """Return every token's reading of the state that it has just updated; states start at zero.

    Queries and keys are divided by sqrt(sum of squares + NORM_EPS) in their own dtype. Per token,
    with a state S of [K, V]: S *= e^g, u = beta (v - S^T k), S += k u^T, o = scale S^T q. The
    tokens of a chunk are solved together; states pass from chunk to chunk.

    Args:
        query: [batch, key heads, tokens, K], bfloat16; float64 when the anchor is computed.
        key: as query. Value head h uses key head h // (value heads / key heads).
        value: [batch, value heads, tokens, V], the dtype of query.
        g: [batch, value heads, tokens], the dtype of query: natural log decays, at most 0.
        beta: as g, between 0 and 1.
        scale: factor of the queries.

    Returns:
        [batch, tokens, value heads, V], contiguous, in the dtype of value.
    """
    wide = torch.promote_types(value.dtype, torch.float32)
    group = value.shape[1] // key.shape[1]
    q, k = (_unit(x).to(wide).repeat_interleave(group, dim=1) for x in (query, key))
    q, k, v = (chunks.split(x, chunk=CHUNK, dim=-2) for x in (q * scale, k, value.to(wide)))
    g, beta = (chunks.split(x.to(wide), chunk=CHUNK, dim=-1) for x in (g, beta))
    left = chunks.decay_matrix(g)
    since_start = g.cumsum(dim=-1).exp().unsqueeze(-1)
    until_end = left[..., -1, :].unsqueeze(-1)

    # Corrections of a chunk from its values, and from the state that the chunk meets.
    weighted = beta.unsqueeze(-1) * k
    system = (weighted @ k.transpose(-1, -2)) * left
    targets = torch.cat([beta.unsqueeze(-1) * v, weighted * since_start], dim=-1)
    solved = torch.linalg.solve_triangular(system, targets, upper=False, unitriangular=True)
    from_values, from_state = solved.tensor_split((v.shape[-1],), dim=-1)
    scores = (q @ k.transpose(-1, -2)) * left

    state = v.new_zeros(*v.shape[:2], k.shape[-1], v.shape[-1])
    outputs = []
    for n in range(v.shape[2]):
        change = from_values[:, :, n] - from_state[:, :, n] @ state
        reading = (q[:, :, n] * since_start[:, :, n]) @ state
        outputs.append(reading + scores[:, :, n] @ change)
        written = (k[:, :, n] * until_end[:, :, n]).transpose(-1, -2) @ change
        state = since_start[:, :, n, -1:] * state + written
    output = torch.cat(outputs, dim=2)[:, :, : value.shape[2]]
    return output.transpose(1, 2).contiguous().to(value.dtype)


def _unit(x: torch.Tensor) -> torch.Tensor:
    return x * torch.rsqrt(x.square().sum(dim=-1, keepdim=True) + NORM_EPS)


def bytes_moved() -> int:
    """Return the bytes of the full workload: every input and the output once."""
    sizes = WORKLOADS["full"]
    keys = 2 * sizes.n_key_heads * sizes.key_dim
    values = sizes.n_value_heads * (2 * sizes.value_dim + 2)
    return 2 * sizes.batch * sizes.n_tokens * (keys + values)


def flops() -> int:
    """Return the operations of the full workload: 7 per state element and token, recurrent."""
    sizes = WORKLOADS["full"]
    states = sizes.batch * sizes.n_value_heads * sizes.key_dim * sizes.value_dim
    return 7 * sizes.n_tokens * states
