"""One gated-delta-rule decode step per request, with a fresh float32 state (Qwen3-Next)."""

from dataclasses import dataclass
from typing import Any

import torch

from problems.linear_attention import draws
from problems.linear_attention.gated_delta import Gates, advance

SOURCE = (
    "FlashInfer-Trace/Bench, definition gdn_decode_qk8_v16_d128_k_last, record"
    " 35b0abd8-5892-44f2-a152-52cba6b59493; Apache-2.0. Gate constants as captured, values redrawn."
)

# fmt: off
A_LOG = (
    -0.169921875, 2.34375, 1.3359375, 2.1875, -0.9375, -1.09375, 1.765625, -0.443359375,
    0.91015625, -0.8125, 2.328125, 0.205078125, 1.375, 2.796875, -0.88671875, -1.3046875,
)
DT_BIAS = (
    -2.078125, -5.625, -4.3125, -3.421875, -3.796875, -3.296875, -4.375, -6.25,
    -3.703125, -0.2890625, -5.21875, -6.1875, -3.046875, -5.0625, -4.875, -5.34375,
)
# fmt: on


@dataclass(frozen=True)
class Sizes:
    """One workload: requests, query (and key) heads, value heads, head width, output factor."""

    batch: int
    n_query_heads: int = 8
    n_value_heads: int = 16
    dim: int = 128
    scale: float = 0.08838834764831843


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(64),
    "smoke": Sizes(4, n_query_heads=2, n_value_heads=4, dim=32, scale=32**-0.5),
    "heldout_1": Sizes(1),
    "heldout_2": Sizes(301),
    "heldout_3": Sizes(32, n_query_heads=4, n_value_heads=8, dim=64, scale=0.125),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw q, k, v, state, A_log, a, dt_bias, b and scale; the seed is the caller's."""
    sizes = WORKLOADS[workload]
    heads = sizes.n_value_heads

    q = 0.18 * draws.normal((sizes.batch, 1, sizes.n_query_heads, sizes.dim), device)
    k = 0.13 * draws.normal((sizes.batch, 1, sizes.n_query_heads, sizes.dim), device)
    v = 0.073 * draws.normal((sizes.batch, 1, heads, sizes.dim), device)
    shape = (sizes.batch, heads, sizes.dim, sizes.dim)
    state = 0.009 * torch.randn(shape, dtype=torch.float32, device=device)
    a_log = torch.tensor(A_LOG[:heads], dtype=torch.float32, device=device)
    a = draws.rounded_normal(1.33, 1.56, shape=(sizes.batch, 1, heads), device=device)
    dt_bias = torch.tensor(DT_BIAS[:heads], dtype=torch.float32, device=device)
    b = draws.rounded_normal(0.4, 1.38, shape=(sizes.batch, 1, heads), device=device)
    return [q, k, v, state, a_log, a, dt_bias, b, sizes.scale]


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
    scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (output, new_state) after one token; the given state is left as it is.

    The state decays by exp(-exp(A_log) * softplus(a + dt_bias)); what it holds under the key k
    moves towards v by the share sigmoid(b); the output reads it at q. Keys are not normalised.

    Args:
        q: [batch, 1, query heads, dim], bfloat16; float64 when the anchor is computed.
        k: as q. Value head h uses query and key head h // (value heads / query heads).
        v: [batch, 1, value heads, dim], the dtype of q.
        state: [batch, value heads, value dim, key dim], float32: the key axis is the fastest.
        A_log: [value heads], float32.
        a: [batch, 1, value heads], the dtype of q.
        dt_bias: [value heads], float32.
        b: as a.
        scale: factor of the output.

    Returns:
        output: [batch, 1, value heads, dim] in the dtype of q.
        new_state: the shape of state, in float32 (float64 in the anchor); fresh storage.
    """
    wide = torch.promote_types(q.dtype, torch.float32)
    gates = Gates(A_log, a, dt_bias, b)
    return advance(state.to(wide), q=q, k=k, v=v, gates=gates, scale=scale)


def bytes_moved() -> int:
    """Return the bytes of the full workload: state read and written, the rest once."""
    sizes = WORKLOADS["full"]
    heads, dim = sizes.n_value_heads, sizes.dim
    state = 2 * 4 * heads * dim * dim
    token = 2 * (2 * sizes.n_query_heads + 2 * heads) * dim
    return sizes.batch * (state + token + 2 * 2 * heads) + 2 * 4 * heads


def flops() -> int:
    """Return the operations of the full workload: 7 per state element, the recurrent form."""
    sizes = WORKLOADS["full"]
    return 7 * sizes.batch * sizes.n_value_heads * sizes.dim * sizes.dim
