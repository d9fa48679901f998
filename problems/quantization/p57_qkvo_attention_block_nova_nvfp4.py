"""Attention block: NVFP4 projections around causal rotary grouped-query attention (Nova)."""

from dataclasses import dataclass
from typing import Any

import torch

from problems.quantization.draws import nvfp4_weight
from problems.quantization.nvfp4 import BLOCK, Nvfp4, from_parts, product, quantise, to_parts
from problems.tolerance import Frobenius, Tolerance

SOURCE = (
    "Own work, re-authored from public model code: Llama-style attention, TransformerEngine's"
    " NVFP4 recipe. The workload class is named by SOL-ExecBench."
)

TOLERANCE = Tolerance((Frobenius(6.5e-2),))

THETA = 10_000.0
OFFSET_LIMIT = 4_096


@dataclass(frozen=True)
class Sizes:
    """One workload: sequences and their length, model width, heads and their width."""

    batch: int
    length: int
    hidden: int = 8_192
    n_heads: int = 64
    n_kv_heads: int = 8
    head_dim: int = 128


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(64, 128),
    "smoke": Sizes(2, 32, hidden=256, n_heads=8, n_kv_heads=2, head_dim=32),
    "heldout_1": Sizes(1, 77),
    "heldout_2": Sizes(3, 513),
    "heldout_3": Sizes(4, 128, hidden=4_096, n_heads=32),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw hidden_states, the angles' offsets and the four weights; the seed is the caller's."""
    sizes = WORKLOADS[workload]
    shape = (sizes.batch, sizes.length, sizes.hidden)
    hidden_states = torch.randn(shape, dtype=torch.bfloat16, device=device)
    inputs = [hidden_states, *_angles(sizes, device)]
    wide, narrow = sizes.n_heads * sizes.head_dim, sizes.n_kv_heads * sizes.head_dim
    widths = [(wide, sizes.hidden), (narrow, sizes.hidden), (narrow, sizes.hidden)]
    for n_rows, n_columns in (*widths, (sizes.hidden, wide)):
        inputs += to_parts(nvfp4_weight(n_rows, n_columns, device=device))
    return inputs


def _angles(sizes: Sizes, device: str) -> list[Any]:
    """Return cosines and sines, [batch, length, head_dim] each, every sequence with its offset."""
    offset = torch.randint(OFFSET_LIMIT, (sizes.batch, 1), device=device)
    position = offset + torch.arange(sizes.length, device=device)
    pair = torch.arange(0, sizes.head_dim, 2, dtype=torch.float32, device=device)
    angle = position.float().unsqueeze(-1) * THETA ** -(pair / sizes.head_dim)
    both = torch.cat((angle, angle), dim=-1)
    return [both.cos().to(torch.bfloat16), both.sin().to(torch.bfloat16)]


@torch.no_grad()
def reference(  # noqa: PLR0913, PLR0917
    hidden_states: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    q_weight: torch.Tensor,
    q_scale: torch.Tensor,
    q_global_scale: float,
    k_weight: torch.Tensor,
    k_scale: torch.Tensor,
    k_global_scale: float,
    v_weight: torch.Tensor,
    v_scale: torch.Tensor,
    v_global_scale: float,
    o_weight: torch.Tensor,
    o_scale: torch.Tensor,
    o_global_scale: float,
) -> torch.Tensor:
    """Return the attention block's output, in the shape and dtype of hidden_states.

    hidden_states and what the heads return are quantised to NVFP4, each with one global scale
    for the whole tensor; the attention between the projections is not quantised.

    Args:
        hidden_states: [batch, length, width], bfloat16; float64 when the anchor is computed.
        cos: [batch, length, D], the dtype of hidden_states; pairs are element i and i + D / 2.
        sin: as cos.
        q_weight: [heads * D, width / 2], uint8, element 2j of a row in the low nibble of byte j.
        q_scale: [heads * D, width / 16], float8_e4m3fn.
        q_global_scale: the factor that decodes the scales.
        k_weight: [kv heads * D, width / 2], packed as q_weight, with k_scale and k_global_scale.
        k_scale: [kv heads * D, width / 16], float8_e4m3fn.
        k_global_scale: as q_global_scale.
        v_weight: as k_weight.
        v_scale: as k_scale.
        v_global_scale: as q_global_scale.
        o_weight: [width, heads * D / 2], packed as q_weight.
        o_scale: [width, heads * D / 16], float8_e4m3fn.
        o_global_scale: as q_global_scale.
    """
    dtype = hidden_states.dtype
    rows = quantise(hidden_states)

    def project(rows: Nvfp4, weight: Nvfp4) -> torch.Tensor:
        wide = torch.promote_types(dtype, torch.float32)
        return product(rows, weight, wide).to(dtype)

    q, k, v = (
        torch.unflatten(project(rows, weight), -1, (-1, cos.shape[-1])).transpose(1, 2)
        for weight in (
            from_parts(q_weight, q_scale, q_global_scale),
            from_parts(k_weight, k_scale, k_global_scale),
            from_parts(v_weight, v_scale, v_global_scale),
        )
    )
    heads = _attend(_rotate(q, cos, sin), _rotate(k, cos, sin), v)
    gathered = quantise(heads.transpose(1, 2).flatten(2))
    return project(gathered, from_parts(o_weight, o_scale, o_global_scale))


def _rotate(heads: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    low, high = heads.chunk(2, dim=-1)
    return heads * cos.unsqueeze(1) + torch.cat((-high, low), dim=-1) * sin.unsqueeze(1)


def _attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Return causal attention by heads; every step rounds to the dtype of q."""
    group = q.shape[1] // k.shape[1]
    k, v = (shared.repeat_interleave(group, dim=1) for shared in (k, v))
    scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    future = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
    wide = torch.promote_types(q.dtype, torch.float32)
    masked = scores.masked_fill(future, -torch.inf).to(wide)
    return torch.softmax(masked, dim=-1).to(q.dtype) @ v


def bytes_moved() -> int:
    """Return the bytes of the full workload: rows, angles and weights read, the output written."""
    sizes = WORKLOADS["full"]
    n_rows = sizes.batch * sizes.length
    n_weights = _n_weights(sizes)
    rows = 2 * n_rows * (2 * sizes.hidden + 2 * sizes.head_dim)
    return rows + n_weights // 2 + n_weights // BLOCK


def flops() -> int:
    """Return the floating-point operations of the full workload: projections and visible pairs."""
    sizes = WORKLOADS["full"]
    n_pairs = sizes.batch * sizes.length * (sizes.length + 1) // 2
    attention = 2 * 2 * n_pairs * sizes.n_heads * sizes.head_dim
    return 2 * sizes.batch * sizes.length * _n_weights(sizes) + attention


def _n_weights(sizes: Sizes) -> int:
    return sizes.hidden * sizes.head_dim * 2 * (sizes.n_heads + sizes.n_kv_heads)
