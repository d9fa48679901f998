"""Gradients of causal attention with normalised, rotated queries and keys and capped logits."""

from dataclasses import dataclass
from typing import Any

import torch

SOURCE = (
    "Own work: re-authored from public model code (Gemma 3 attention with Gemma 2's soft cap) and"
    " calculus. The workload class is named by SOL-ExecBench."
)

ROPE_THETA = 10_000.0
RMS_NORM_EPS = 1e-6


@dataclass(frozen=True)
class Sizes:
    """One workload: batch, tokens, model width, query heads, KV heads, head width, logits' cap."""

    batch: int
    n_tokens: int
    width: int = 3_072
    n_heads: int = 24
    n_kv_heads: int = 8
    dim: int = 128
    softcap: float = 50.0


def _smoke(softcap: float) -> Sizes:
    return Sizes(2, 64, width=192, n_heads=6, n_kv_heads=2, dim=32, softcap=softcap)


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(64, 256),
    "smoke": _smoke(softcap=50.0),
    "smoke_2": _smoke(softcap=1.5),
    "heldout_1": Sizes(8, 1_024),
    "heldout_2": Sizes(3, 333),
    "heldout_3": Sizes(8, 256, softcap=1.5),
    "heldout_4": Sizes(4, 512, width=2_048, n_heads=16, n_kv_heads=2, dim=64),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw the gradient, the layer's input, its tables, weights and scalars; the caller seeds."""
    sizes = WORKLOADS[workload]

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, dtype=torch.float32, device=device)

    shape = (sizes.batch, sizes.n_tokens, sizes.width)
    grad_output, hidden_states = normal(*shape), normal(*shape)
    n_query, n_kv = sizes.n_heads * sizes.dim, sizes.n_kv_heads * sizes.dim
    q_weight, k_weight, v_weight = (
        normal(rows, sizes.width) / sizes.width**0.5 for rows in (n_query, n_kv, n_kv)
    )
    o_weight = normal(sizes.width, n_query) / n_query**0.5
    norms = [0.1 * normal(sizes.dim) for _ in range(2)]
    weights = [q_weight, k_weight, v_weight, o_weight, *norms]
    cos, sin = _tables(sizes, device)
    return [
        *(grad_output, hidden_states, cos, sin, *weights),
        *(sizes.dim**-0.5, sizes.softcap, RMS_NORM_EPS),
    ]


def _tables(sizes: Sizes, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    half = torch.arange(sizes.dim // 2, dtype=torch.float32, device=device)
    frequencies = ROPE_THETA ** (-half / (sizes.dim // 2))
    positions = torch.arange(sizes.n_tokens, dtype=torch.float32, device=device)
    angles = torch.outer(positions, frequencies).repeat(1, 2)
    whole = angles.expand(sizes.batch, -1, -1)
    return whole.cos().contiguous(), whole.sin().contiguous()


@torch.no_grad()
def reference(  # noqa: PLR0913, PLR0917
    grad_output: torch.Tensor,
    hidden_states: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    q_weight: torch.Tensor,
    k_weight: torch.Tensor,
    v_weight: torch.Tensor,
    o_weight: torch.Tensor,
    q_norm_weight: torch.Tensor,
    k_norm_weight: torch.Tensor,
    scaling: float,
    softcap: float,
    eps: float,
) -> tuple[torch.Tensor, ...]:
    """Return the gradients of hidden_states, of the four projections and of the two norm weights.

    The layer is o_weight applied to causal softmax attention. Queries and keys are RMS-normalised
    per head with gain 1 + weight, then rotated (element i with i + dim / 2); a logit x = q . k *
    scaling becomes softcap * tanh(x / softcap). Query head h reads KV head h // G.

    Args:
        grad_output: [batch, tokens, width], float32; float64 when the anchor is computed.
        hidden_states: the shape of grad_output; this and all that follow have its dtype.
        cos: [batch, tokens, dim].
        sin: [batch, tokens, dim].
        q_weight: [query heads * dim, width].
        k_weight: [KV heads * dim, width].
        v_weight: [KV heads * dim, width].
        o_weight: [width, query heads * dim].
        q_norm_weight: [dim].
        k_norm_weight: [dim].
        scaling: factor of the logits.
        softcap: largest magnitude of a logit.
        eps: what is added to a head's mean square.

    Returns:
        Seven tensors with the shapes of hidden_states, q_weight, k_weight, v_weight, o_weight,
        q_norm_weight and k_norm_weight.
    """
    wide = torch.promote_types(hidden_states.dtype, torch.float32)
    grad, x = grad_output.to(wide), hidden_states.to(wide)
    wq, wk, wv, wo = (w.to(wide) for w in (q_weight, k_weight, v_weight, o_weight))
    dim = q_norm_weight.shape[0]
    n_kv_heads = k_weight.shape[0] // dim

    rope = _Rope(cos.to(wide)[:, None, None], sin.to(wide)[:, None, None])
    q = _Normed(_split(x @ wq.t(), n_kv_heads, dim), q_norm_weight.to(wide), eps)
    k = _Normed(_split(x @ wk.t(), n_kv_heads, dim), k_norm_weight.to(wide), eps)
    v = _split(x @ wv.t(), n_kv_heads, dim)
    queries, keys = rope.turn(q.output), rope.turn(k.output)

    # From here on queries have G heads per KV head and keys one: products broadcast over them.
    ratio = torch.tanh(queries @ keys.transpose(-1, -2) * scaling / softcap)
    future = torch.ones(ratio.shape[-2:], dtype=torch.bool, device=ratio.device).triu(1)
    weights = torch.softmax((softcap * ratio).masked_fill(future, -torch.inf), dim=-1)
    merged = _merge(weights @ v)

    d_wo = _outer(grad, merged)
    d_attended = _split(grad @ wo, n_kv_heads, dim)
    d_v = (weights.transpose(-1, -2) @ d_attended).sum(dim=2, keepdim=True)
    d_weights = d_attended @ v.transpose(-1, -2)
    d_capped = weights * (d_weights - (weights * d_weights).sum(dim=-1, keepdim=True))
    d_scores = d_capped * (1 - ratio.square()) * scaling
    d_keys = (d_scores.transpose(-1, -2) @ queries).sum(dim=2, keepdim=True)

    d_q, d_q_gain = q.adjoint(rope.turn_back(d_scores @ keys))
    d_k, d_k_gain = k.adjoint(rope.turn_back(d_keys))
    d_q, d_k, d_v = (_merge(d) for d in (d_q, d_k, d_v))
    d_x = d_q @ wq + d_k @ wk + d_v @ wv
    gradients = (d_x, *(_outer(d, x) for d in (d_q, d_k, d_v)), d_wo, d_q_gain, d_k_gain)
    return tuple(gradient.to(hidden_states.dtype) for gradient in gradients)


@dataclass(frozen=True)
class _Rope:
    """The rotation by `cos` and `sin`, both [batch, 1, 1, tokens, dim], and its adjoint."""

    cos: torch.Tensor
    sin: torch.Tensor

    def turn(self, x: torch.Tensor) -> torch.Tensor:
        first, second = x.chunk(2, dim=-1)
        return x * self.cos + torch.cat((-second, first), dim=-1) * self.sin

    def turn_back(self, grad: torch.Tensor) -> torch.Tensor:
        first, second = (grad * self.sin).chunk(2, dim=-1)
        return grad * self.cos + torch.cat((second, -first), dim=-1)


class _Normed:
    """Heads divided by their root mean square, times 1 + weight."""

    def __init__(self, x: torch.Tensor, weight: torch.Tensor, eps: float) -> None:
        self._gain = 1 + weight
        self._inverse = torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + eps)
        self._unit = x * self._inverse
        self.output = self._unit * self._gain

    def adjoint(self, grad: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the gradients of the heads and of the weight, from that of the output."""
        d_weight = (grad * self._unit).flatten(0, -2).sum(dim=0)
        d_unit = grad * self._gain
        along = (d_unit * self._unit).mean(dim=-1, keepdim=True)
        return self._inverse * (d_unit - self._unit * along), d_weight


def _split(x: torch.Tensor, n_kv_heads: int, dim: int) -> torch.Tensor:
    """Return [batch, KV heads, heads per KV head, tokens, dim] of merged heads."""
    return torch.unflatten(x, -1, (n_kv_heads, -1, dim)).permute(0, 2, 3, 1, 4)


def _merge(x: torch.Tensor) -> torch.Tensor:
    return x.permute(0, 3, 1, 2, 4).flatten(2)


def _outer(grad: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Return the gradient of a weight [out, in], summed over batch and tokens."""
    return grad.flatten(0, 1).t() @ x.flatten(0, 1)


def bytes_moved() -> int:
    """Return the bytes of the full workload: every input and every gradient once."""
    sizes = WORKLOADS["full"]
    tokens = sizes.batch * sizes.n_tokens
    weights = 2 * sizes.width * sizes.dim * (sizes.n_heads + sizes.n_kv_heads)
    return 4 * (tokens * (3 * sizes.width + 2 * sizes.dim) + 2 * weights + 4 * sizes.dim)


def flops() -> int:
    """Return the operations of the matrix products in the full workload.

    q, k, v and both their adjoints; the output projection's two adjoints, without its forward;
    six products on the visible pairs of attention.
    """
    sizes = WORKLOADS["full"]
    tokens = sizes.batch * sizes.n_tokens
    query_product = 2 * tokens * sizes.width * sizes.n_heads * sizes.dim
    kv_product = 2 * tokens * sizes.width * sizes.n_kv_heads * sizes.dim
    pairs = sizes.batch * sizes.n_heads * sizes.n_tokens * (sizes.n_tokens + 1) // 2
    return 3 * (query_product + 2 * kv_product) + 2 * query_product + 6 * 2 * sizes.dim * pairs
