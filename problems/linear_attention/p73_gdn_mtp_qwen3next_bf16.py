"""Gated delta rule over the draft tokens of each request, from pooled states (Qwen3-Next)."""

from dataclasses import dataclass
from typing import Any

import torch

from problems.linear_attention import draws
from problems.linear_attention.gated_delta import Gates, advance
from problems.tolerance import Default, Exact, Tolerance

SOURCE = (
    "FlashInfer-Trace/Bench, definition gdn_mtp_qk8_v16_d128_k_last, record"
    " 4c266399-6168-447d-b374-cfb1234e296c; Apache-2.0. Gate constants as captured, values and"
    " pool rows redrawn."
)

TOLERANCE = Tolerance((Default(), Exact()))

# fmt: off
A_LOG = (
    -1.046875, -0.5234375, -1.828125, -1.15625, -0.0244140625, 0.28515625, -1.9921875, -2.0,
    0.11962890625, 0.3671875, -1.59375, -1.34375, 0.333984375, -1.640625, -0.5234375, -0.2890625,
)
DT_BIAS = (
    -5.25, -5.75, -2.015625, -3.3125, -6.25, -6.65625, -0.88671875, -0.6328125,
    -4.8125, -5.28125, -1.7578125, -3.484375, 2.3125, -6.40625, -6.34375, -6.75,
)
# fmt: on


@dataclass(frozen=True)
class Sizes:
    """One workload: requests, their tokens, pool rows, heads, head width, output factor."""

    batch: int
    n_tokens: int
    n_rows: int
    n_query_heads: int = 8
    n_value_heads: int = 16
    dim: int = 128
    scale: float = 0.08838834764831843


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(32, 4, 49),
    "smoke": Sizes(3, 4, 5, n_query_heads=2, n_value_heads=4, dim=32, scale=32**-0.5),
    "heldout_1": Sizes(5, 8, 9),
    "heldout_2": Sizes(64, 2, 64),
    "heldout_3": Sizes(8, 4, 20, n_query_heads=4),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw q, k, v, initial_state, initial_state_indices, A_log, a, dt_bias, b and scale.

    The seed is the caller's. The pool rows of a draw are distinct and unordered. Keys have a
    squared length of about 8.6 at full width, so that corrections overshoot.
    """
    sizes = WORKLOADS[workload]
    heads, dim, rows = sizes.n_value_heads, sizes.dim, (sizes.batch, sizes.n_tokens)
    q = 0.63 * draws.normal((*rows, sizes.n_query_heads, dim), device)
    k = 0.26 * draws.normal((*rows, sizes.n_query_heads, dim), device)
    v = 0.13 * draws.normal((*rows, heads, dim), device)
    pool = (sizes.n_rows, heads, dim, dim)
    initial_state = 0.0215 * torch.randn(pool, dtype=torch.float32, device=device)
    indices = torch.randperm(sizes.n_rows, device=device)[: sizes.batch].to(torch.int32)
    a_log = torch.tensor(A_LOG[:heads], dtype=torch.float32, device=device)
    a = draws.rounded_normal(0.82, 2.24, shape=(*rows, heads), device=device)
    dt_bias = torch.tensor(DT_BIAS[:heads], dtype=torch.float32, device=device)
    b = draws.rounded_normal(0.45, 2.02, shape=(*rows, heads), device=device)
    return [q, k, v, initial_state, indices, a_log, a, dt_bias, b, sizes.scale]


@torch.no_grad()
def reference(  # noqa: PLR0913, PLR0917
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    initial_state: torch.Tensor,
    initial_state_indices: torch.Tensor,
    A_log: torch.Tensor,
    a: torch.Tensor,
    dt_bias: torch.Tensor,
    b: torch.Tensor,
    scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (output, final_state): every draft token's output, and a copy of the pool.

    The drafts may yet be refused, so the pool is handed back as it came. Per token a request's
    own state decays by exp(-exp(A_log) * softplus(a + dt_bias)); what it holds under the key k
    moves towards v by the share sigmoid(b); the output reads it at q. Keys are not normalised.

    Args:
        q: [requests, tokens, query heads, dim], bfloat16; float64 when the anchor is computed.
        k: as q. Value head h uses query and key head h // (value heads / query heads).
        v: [requests, tokens, value heads, dim], the dtype of q.
        initial_state: [pool rows, value heads, value dim, key dim], float32: the key axis is the
            fastest.
        initial_state_indices: [requests], int32: the pool row that each request starts from.
        A_log: [value heads], float32.
        a: [requests, tokens, value heads], the dtype of q.
        dt_bias: [value heads], float32.
        b: as a.
        scale: factor of the output.

    Returns:
        output: [requests, tokens, value heads, dim] in the dtype of q, each token rounded once.
        final_state: equal to initial_state bit for bit, in storage of its own.
    """
    wide = torch.promote_types(q.dtype, torch.float32)
    state = initial_state.index_select(0, initial_state_indices).to(wide)
    gates = Gates(A_log, a, dt_bias, b)
    output, _ = advance(state, q=q, k=k, v=v, gates=gates, scale=scale)
    return output, initial_state.clone()


def bytes_moved() -> int:
    """Return the bytes of the full workload: the pool read and written, the rest once."""
    sizes = WORKLOADS["full"]
    heads, dim = sizes.n_value_heads, sizes.dim
    pool = 2 * 4 * sizes.n_rows * heads * dim * dim
    token = 2 * (2 * sizes.n_query_heads + 2 * heads) * dim + 2 * 2 * heads
    return pool + sizes.batch * (sizes.n_tokens * token + 4) + 2 * 4 * heads


def flops() -> int:
    """Return the operations of the full workload: 7 per state element and token."""
    sizes = WORKLOADS["full"]
    states = sizes.batch * sizes.n_value_heads * sizes.dim * sizes.dim
    return 7 * sizes.n_tokens * states
