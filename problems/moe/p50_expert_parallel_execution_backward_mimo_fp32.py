"""Backward pass of routed SwiGLU experts and their weighted sum, on one device (MiMo)."""

from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional

from problems.moe.draws import popular_experts, weights
from problems.moe.experts import Share, shares

SOURCE = (
    "Re-authored from public model code (MiMo's experts, differentiated);"
    " workload class named by SOL-ExecBench; own work of this project."
)


@dataclass(frozen=True)
class Sizes:
    """One workload: tokens, experts, choices per token, and the experts' widths.

    `popularity_std` skews the load; at 0 every expert is as likely as any other.
    """

    n_tokens: int
    n_experts: int = 256
    n_chosen: int = 8
    width: int = 4_096
    inner: int = 1_024
    popularity_std: float = 0.0


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(6_144),
    "smoke": Sizes(64, n_experts=16, n_chosen=4, width=128, inner=64),
    "heldout_1": Sizes(77),
    "heldout_2": Sizes(3_000, popularity_std=1.5),
    "heldout_3": Sizes(2_048, n_experts=64, n_chosen=4, width=2_048, inner=768),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw the seven inputs; the seed is the caller's."""
    sizes = WORKLOADS[workload]
    tokens, experts, width, inner = sizes.n_tokens, sizes.n_experts, sizes.width, sizes.inner

    def scaled(*shape: int) -> torch.Tensor:
        return weights(*shape, fan_in=shape[-1], dtype=torch.float32, device=device)

    return [
        torch.randn(tokens, width, device=device),
        torch.randn(tokens, width, device=device),
        popular_experts(
            tokens, experts, sizes.n_chosen, popularity_std=sizes.popularity_std, device=device
        ),
        torch.softmax(torch.randn(tokens, sizes.n_chosen, device=device), dim=-1),
        scaled(experts, inner, width),
        scaled(experts, inner, width),
        scaled(experts, width, inner),
    ]


@torch.no_grad()
def reference(  # noqa: PLR0913, PLR0917
    grad_output: torch.Tensor,
    hidden_states: torch.Tensor,
    topk_indices: torch.Tensor,
    topk_weights: torch.Tensor,
    gate_weights: torch.Tensor,
    up_weights: torch.Tensor,
    down_weights: torch.Tensor,
) -> tuple[torch.Tensor, ...]:
    """Return the gradients of hidden_states, topk_weights, gate, up and down weights.

    Each has the shape and dtype of what it belongs to; experts without tokens get zeros. The
    forward pass is computed anew; the router that made topk_weights is not differentiated.

    Args:
        grad_output: [tokens, width], float32; float64 when the anchor is computed.
        hidden_states: [tokens, width], the dtype of grad_output.
        topk_indices: [tokens, choices], int64, distinct in each row.
        topk_weights: [tokens, choices], the dtype of grad_output, as all that follow.
        gate_weights: [experts, inner, width].
        up_weights: [experts, inner, width].
        down_weights: [experts, width, inner].
    """
    experts = gate_weights, up_weights, down_weights
    return _run(grad_output, hidden_states, topk_indices, topk_weights, experts)


@torch.no_grad()
def anchor(  # noqa: PLR0913, PLR0917
    grad_output: torch.Tensor,
    hidden_states: torch.Tensor,
    topk_indices: torch.Tensor,
    topk_weights: torch.Tensor,
    gate_weights: torch.Tensor,
    up_weights: torch.Tensor,
    down_weights: torch.Tensor,
) -> tuple[torch.Tensor, ...]:
    """Return the reference at float64 from inputs at their own dtypes, an expert at a time."""
    experts = gate_weights, up_weights, down_weights
    return _run(
        grad_output.double(), hidden_states.double(), topk_indices, topk_weights.double(), experts
    )


@dataclass(frozen=True)
class _Rows:
    """What one expert sees: its tokens, their output gradients and weights; and its matrices."""

    tokens: torch.Tensor
    gradients: torch.Tensor
    factors: torch.Tensor
    gate: torch.Tensor
    up: torch.Tensor
    down: torch.Tensor


def _run(
    grad_output: torch.Tensor,
    hidden_states: torch.Tensor,
    topk_indices: torch.Tensor,
    topk_weights: torch.Tensor,
    experts: tuple[torch.Tensor, ...],
) -> tuple[torch.Tensor, ...]:
    """Go expert by expert, each one's matrices cast to the dtype of grad_output."""
    wide = grad_output.dtype
    grad_hidden = torch.zeros_like(hidden_states)
    grad_topk = torch.zeros_like(topk_weights)
    grad_experts = tuple(torch.zeros_like(matrices, dtype=wide) for matrices in experts)

    def rows_of(share: Share) -> _Rows:
        return _Rows(
            hidden_states[share.tokens],
            grad_output[share.tokens],
            topk_weights[share.tokens, share.slots].unsqueeze(-1),
            *(matrices[share.expert].to(wide) for matrices in experts),
        )

    for share in shares(topk_indices, experts[0].shape[0]):
        of_tokens, of_factors, *of_matrices = _backward(rows_of(share))
        grad_hidden.index_add_(0, share.tokens, of_tokens)
        grad_topk[share.tokens, share.slots] = of_factors
        for whole, part in zip(grad_experts, of_matrices, strict=True):
            whole[share.expert] = part
    return grad_hidden, grad_topk, *grad_experts


def _backward(rows: _Rows) -> tuple[torch.Tensor, ...]:
    """Return one expert's gradients: of tokens, of weights, of gate, up and down matrices."""
    gated, up = rows.tokens @ rows.gate.t(), rows.tokens @ rows.up.t()
    activated = functional.silu(gated)
    inner = activated * up
    of_factors = (rows.gradients * (inner @ rows.down.t())).sum(dim=-1)

    of_made = rows.gradients * rows.factors
    of_inner = of_made @ rows.down
    of_up = of_inner * activated
    share = torch.sigmoid(gated)
    of_gated = of_inner * up * share * (1 + gated * (1 - share))
    return (
        of_gated @ rows.gate + of_up @ rows.up,
        of_factors,
        of_gated.t() @ rows.tokens,
        of_up.t() @ rows.tokens,
        of_made.t() @ inner,
    )


def bytes_moved() -> int:
    """Return the bytes of the full workload: weights and tokens read, their gradients written."""
    sizes = WORKLOADS["full"]
    experts = 2 * 3 * sizes.n_experts * sizes.width * sizes.inner
    tokens = sizes.n_tokens * (3 * sizes.width + 2 * sizes.n_chosen)
    return 4 * (experts + tokens) + 8 * sizes.n_tokens * sizes.n_chosen


def flops() -> int:
    """Return the floating-point operations of the full workload: eight products per choice.

    The down projection of the forward pass is not needed: a weight's gradient is also the inner
    activations times the unweighted gradient that the down matrix hands back.
    """
    sizes = WORKLOADS["full"]
    return 8 * 2 * sizes.n_tokens * sizes.n_chosen * sizes.width * sizes.inner
