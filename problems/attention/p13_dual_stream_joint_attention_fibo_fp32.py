"""Modulated image attention joined with text keys and values, with three-axis rotation (FIBO)."""

from dataclasses import dataclass
from math import prod
from typing import Any

import torch

SOURCE = (
    "Own work: re-authored from public model code (FIBO's joint attention block, AdaLN-Zero). The"
    " workload class is named by SOL-ExecBench."
)

ROPE_THETA = 10_000.0
AXIS_ROWS = (16, 56, 56)
LAYER_NORM_EPS = 1e-6


@dataclass(frozen=True)
class Sizes:
    """One workload: batch, image grid, text tokens, widths, and whether text takes part."""

    batch: int
    grid: tuple[int, int, int]
    n_text: int
    width: int = 3_072
    joint_width: int = 4_096
    dim: int = 128
    is_joint_block: int = 1


def _smoke(is_joint_block: int) -> Sizes:
    return Sizes(2, (2, 4, 4), 8, width=96, joint_width=128, dim=32, is_joint_block=is_joint_block)


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(4, (4, 16, 16), 256),
    "smoke": _smoke(is_joint_block=1),
    "smoke_2": _smoke(is_joint_block=0),
    "heldout_1": Sizes(2, (1, 32, 40), 77),
    "heldout_2": Sizes(1, (16, 7, 9), 333),
    "heldout_3": Sizes(2, (4, 16, 16), 256, is_joint_block=0),
    "heldout_4": Sizes(2, (4, 16, 16), 128, width=1_536, joint_width=2_048),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw both streams, the timestep, seven linear layers; add positions, tables and the flag.

    The seed is the caller's. Positions and tables are the same in every draw.
    """
    sizes = WORKLOADS[workload]
    width, joint = sizes.width, sizes.joint_width

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, dtype=torch.float32, device=device)

    hidden_states = normal(sizes.batch, prod(sizes.grid), width)
    inputs = [
        hidden_states,
        normal(sizes.batch, width),
        normal(sizes.batch, sizes.n_text, joint),
    ]
    layers = [(6 * width, width), *[(width, width)] * 3, *[(width, joint)] * 2, (width, width)]
    for n_out, n_in in layers:
        inputs += [normal(n_out, n_in) / n_in**0.5, 0.1 * normal(n_out)]
    return [*inputs, *_positions(sizes.grid, device), *_tables(sizes, device), sizes.is_joint_block]


def _positions(grid: tuple[int, int, int], device: str) -> list[torch.Tensor]:
    token = torch.arange(prod(grid), dtype=torch.int64, device=device)
    _, rows, columns = grid
    return [token // (rows * columns), token // columns % rows, token % columns]


def _tables(sizes: Sizes, device: str) -> list[torch.Tensor]:
    per_axis = sizes.dim // 3
    exponents = torch.arange(0, per_axis, 2, dtype=torch.float32, device=device) / per_axis
    frequencies = ROPE_THETA**-exponents
    tables = []
    for n_rows in AXIS_ROWS:
        positions = torch.arange(n_rows, dtype=torch.float32, device=device)
        angles = torch.outer(positions, frequencies)
        tables += [angles.cos(), angles.sin()]
    return tables


@torch.no_grad()
def reference(  # noqa: PLR0913, PLR0917
    hidden_states: torch.Tensor,
    timestep_embedding: torch.Tensor,
    encoder_hidden_states: torch.Tensor,
    adaln_linear_weight: torch.Tensor,
    adaln_linear_bias: torch.Tensor,
    to_q_weight: torch.Tensor,
    to_q_bias: torch.Tensor,
    to_k_weight: torch.Tensor,
    to_k_bias: torch.Tensor,
    to_v_weight: torch.Tensor,
    to_v_bias: torch.Tensor,
    to_k_context_weight: torch.Tensor,
    to_k_context_bias: torch.Tensor,
    to_v_context_weight: torch.Tensor,
    to_v_context_bias: torch.Tensor,
    to_out_weight: torch.Tensor,
    to_out_bias: torch.Tensor,
    pos_idx_axis0: torch.Tensor,
    pos_idx_axis1: torch.Tensor,
    pos_idx_axis2: torch.Tensor,
    cos_axis0: torch.Tensor,
    sin_axis0: torch.Tensor,
    cos_axis1: torch.Tensor,
    sin_axis1: torch.Tensor,
    cos_axis2: torch.Tensor,
    sin_axis2: torch.Tensor,
    is_joint_block: int,
) -> torch.Tensor:
    """Return hidden_states plus the gated, projected attention of its tokens, [batch, S, width].

    The image is layer-normalised and modulated; queries, keys and values are its projections, the
    first two rotated. In a joint block the normalised text adds keys and values, unrotated. No
    mask. Of the six chunks of the modulation only shift, scale and gate, the first three, act.

    Args:
        hidden_states: [batch, S, width], float32; float64 when the anchor is computed. All
            floating inputs have its dtype.
        timestep_embedding: [batch, width].
        encoder_hidden_states: [batch, T, joint width].
        adaln_linear_weight: [6 * width, width]; its bias [6 * width].
        to_q_weight: [width, width]; its bias [width]; to_k, to_v and to_out likewise.
        to_k_context_weight: [width, joint width]; its bias [width]; to_v_context likewise.
        pos_idx_axis0: [S], int64: a token's place on the axis; axis1 and axis2 likewise.
        cos_axis0: [rows, P], rows >= the axis' length; sin_axis0, axis1 and axis2 likewise. Axis
            a turns the neighbouring pairs of channels 2P * a up to 2P * (a + 1) of a head. A head
            is 6P channels wide, rounded up to a multiple of 16; the rest passes through.
        is_joint_block: 1 if text takes part, else 0.
    """
    wide = torch.promote_types(hidden_states.dtype, torch.float32)
    x = hidden_states.to(wide)
    time = torch.nn.functional.silu(timestep_embedding.to(wide))
    modulation = _linear(time, adaln_linear_weight, adaln_linear_bias).unsqueeze(1)
    shift, scale, gate = modulation.chunk(6, dim=-1)[:3]
    image = _normalise(x) * (1 + scale) + shift

    places = (pos_idx_axis0, pos_idx_axis1, pos_idx_axis2)
    cos = _by_token((cos_axis0, cos_axis1, cos_axis2), places).to(wide)
    sin = _by_token((sin_axis0, sin_axis1, sin_axis2), places).to(wide)
    dim = -(-2 * cos.shape[-1] // 16) * 16
    q = _rotate(_split(_linear(image, to_q_weight, to_q_bias), dim), cos, sin)
    k = _rotate(_split(_linear(image, to_k_weight, to_k_bias), dim), cos, sin)
    v = _split(_linear(image, to_v_weight, to_v_bias), dim)
    if is_joint_block:
        text = _normalise(encoder_hidden_states.to(wide))
        k_text = _linear(text, to_k_context_weight, to_k_context_bias)
        v_text = _linear(text, to_v_context_weight, to_v_context_bias)
        k = torch.cat((k, _split(k_text, dim)), dim=1)
        v = torch.cat((v, _split(v_text, dim)), dim=1)

    q, k, v = (heads.transpose(1, 2) for heads in (q, k, v))
    weights = torch.softmax(q @ k.transpose(-1, -2) / dim**0.5, dim=-1)
    attended = (weights @ v).transpose(1, 2).flatten(2)
    output = x + gate * _linear(attended, to_out_weight, to_out_bias)
    return output.to(hidden_states.dtype)


def _linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.linear(x, weight.to(x.dtype), bias.to(x.dtype))


def _split(x: torch.Tensor, width: int) -> torch.Tensor:
    return torch.unflatten(x, -1, (-1, width))


def _normalise(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.layer_norm(x, x.shape[-1:], eps=LAYER_NORM_EPS)


def _by_token(tables: tuple[torch.Tensor, ...], places: tuple[torch.Tensor, ...]) -> torch.Tensor:
    """Return [S, 3P]: each token's rows of the three axes' tables, side by side."""
    rows = [table[place] for table, place in zip(tables, places, strict=True)]
    return torch.cat(rows, dim=-1)


def _rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Turn neighbouring channel pairs of x [batch, S, heads, dim] by tables [S, pairs]."""
    n_turned = 2 * cos.shape[-1]
    even, odd = _split(x[..., :n_turned], 2).unbind(-1)
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    turned = torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)
    return torch.cat((turned, x[..., n_turned:]), dim=-1)


def bytes_moved() -> int:
    """Return the bytes of the full workload: what is needed of the inputs, and the output once.

    The modulation's unused half and unused rows of the tables are left out.
    """
    sizes = WORKLOADS["full"]
    width, joint, n_image = sizes.width, sizes.joint_width, prod(sizes.grid)
    streams = sizes.batch * (2 * n_image * width + width + sizes.n_text * joint)
    modulation = 3 * width * (width + 1)
    projections = 4 * width * (width + 1) + 2 * width * (joint + 1)
    tables = 2 * sum(sizes.grid) * (sizes.dim // 3 // 2)
    return 4 * (streams + modulation + projections + tables) + 3 * 8 * n_image


def flops() -> int:
    """Return the operations of the matrix products in the full workload, all of the modulation."""
    sizes = WORKLOADS["full"]
    width, n_image, n_text = sizes.width, prod(sizes.grid), sizes.n_text
    products = 6 * width * width + 4 * n_image * width * width
    products += 2 * n_text * sizes.joint_width * width + 2 * n_image * (n_image + n_text) * width
    return 2 * sizes.batch * products
