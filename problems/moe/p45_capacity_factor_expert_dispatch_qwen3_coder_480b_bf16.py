"""Dispatch to 160 experts of bounded capacity, batched SwiGLU, and weighted recombination."""

from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional

from problems.moe.draws import popular_experts, weights

SOURCE = (
    "Re-authored from public model code (Qwen3-Coder-480B's experts, capacity-bounded dispatch);"
    " workload class named by SOL-ExecBench; own work of this project."
)

CAPACITY_FACTOR = 1.25
POPULARITY_STD = 0.5


@dataclass(frozen=True)
class Sizes:
    """One workload: tokens, experts, choices per token, and the experts' widths.

    `n_kept` is how many assignments fit in a typical draw of the full workload.
    """

    n_tokens: int
    n_experts: int = 160
    n_chosen: int = 8
    width: int = 6_144
    inner: int = 2_560
    n_kept: int = 0


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(8_192, n_kept=59_700),
    "smoke": Sizes(128, n_experts=16, n_chosen=4, width=128, inner=64),
    "heldout_1": Sizes(1_000),
    "heldout_2": Sizes(12),
    "heldout_3": Sizes(4_096, n_experts=64, n_chosen=4, width=2_048, inner=1_024),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw the six inputs, some experts more popular than their capacity; the caller seeds."""
    sizes = WORKLOADS[workload]
    bf16 = torch.bfloat16
    experts, width, inner = sizes.n_experts, sizes.width, sizes.inner
    hidden_states = torch.randn(sizes.n_tokens, width, dtype=bf16, device=device)
    selected_experts = popular_experts(
        sizes.n_tokens, experts, sizes.n_chosen, popularity_std=POPULARITY_STD, device=device
    )
    logits = torch.randn(sizes.n_tokens, sizes.n_chosen, device=device)
    return [
        hidden_states,
        selected_experts,
        torch.softmax(logits, dim=-1).to(bf16),
        weights(experts, width, inner, fan_in=width, dtype=bf16, device=device),
        weights(experts, width, inner, fan_in=width, dtype=bf16, device=device),
        weights(experts, inner, width, fan_in=inner, dtype=bf16, device=device),
    ]


@torch.no_grad()
def reference(
    hidden_states: torch.Tensor,
    selected_experts: torch.Tensor,
    routing_weights: torch.Tensor,
    expert_gate_weights: torch.Tensor,
    expert_up_weights: torch.Tensor,
    expert_down_weights: torch.Tensor,
) -> torch.Tensor:
    """Return each token's weighted sum over the experts that had room for it, [tokens, width].

    An expert takes the first C assignments in the order of flattened selected_experts, C being
    1.25 times the mean load, rounded down, and at least 1. The rest is dropped and the weights of
    what stays are not renormalised. Every step rounds to the dtype of the inputs.

    Args:
        hidden_states: [tokens, width], bfloat16; float64 when the anchor is computed.
        selected_experts: [tokens, choices], int64, distinct in each row.
        routing_weights: [tokens, choices], the dtype of hidden_states, as are those that follow.
        expert_gate_weights: [experts, width, inner]; a token multiplies from the left.
        expert_up_weights: [experts, width, inner].
        expert_down_weights: [experts, inner, width].
    """
    experts = expert_gate_weights, expert_up_weights, expert_down_weights
    return _run(
        hidden_states,
        selected_experts,
        routing_weights,
        experts,
        n_at_once=expert_gate_weights.shape[0],
    )


@torch.no_grad()
def anchor(
    hidden_states: torch.Tensor,
    selected_experts: torch.Tensor,
    routing_weights: torch.Tensor,
    expert_gate_weights: torch.Tensor,
    expert_up_weights: torch.Tensor,
    expert_down_weights: torch.Tensor,
) -> torch.Tensor:
    """Return the reference at float64 from inputs at their own dtypes, an expert at a time."""
    experts = expert_gate_weights, expert_up_weights, expert_down_weights
    return _run(
        hidden_states.double(), selected_experts, routing_weights.double(), experts, n_at_once=1
    )


def _run(
    hidden_states: torch.Tensor,
    selected_experts: torch.Tensor,
    routing_weights: torch.Tensor,
    experts: tuple[torch.Tensor, ...],
    *,
    n_at_once: int,
) -> torch.Tensor:
    """Evaluate `n_at_once` experts together, their matrices cast to the dtype of the tokens.

    Places that no assignment fills hold an extra token, all zero and of weight zero.
    """
    n_experts = experts[0].shape[0]
    tokens, factors = _fill_places(selected_experts, routing_weights, n_experts)
    padded = torch.cat((hidden_states, torch.zeros_like(hidden_states[:1])))
    total = torch.zeros_like(padded)
    for first in range(0, n_experts, n_at_once):
        here = slice(first, first + n_at_once)
        gate, up, down = (matrix[here].to(padded.dtype) for matrix in experts)
        taken = padded[tokens[here]]
        made = (functional.silu(taken @ gate) * (taken @ up)) @ down
        made *= factors[here].unsqueeze(-1)
        # Expert by expert, for atomic sums would come out differently every time.
        for rows, addends in zip(tokens[here], made, strict=True):
            total.index_add_(0, rows, addends)
    return total[:-1]


def _fill_places(
    selected_experts: torch.Tensor, routing_weights: torch.Tensor, n_experts: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return which token takes each place of each expert, and its weight: both [experts, C]."""
    n_tokens, n_chosen = selected_experts.shape
    capacity = max(int(n_tokens * n_chosen / n_experts * CAPACITY_FACTOR), 1)
    experts, order = selected_experts.flatten().sort(stable=True)
    every = torch.arange(n_experts, device=experts.device)
    rank = torch.arange(order.numel(), device=experts.device)
    rank -= torch.searchsorted(experts, every)[experts]
    # The dropped all go to one place behind the last.
    place = torch.where(rank < capacity, experts * capacity + rank, n_experts * capacity)
    tokens = order.new_full((n_experts * capacity + 1,), n_tokens)
    tokens[place] = order // n_chosen
    factors = routing_weights.new_zeros(n_experts * capacity + 1)
    factors[place] = routing_weights.flatten()[order]
    shape = (n_experts, capacity)
    return tokens[:-1].view(shape), factors[:-1].view(shape)


def bytes_moved() -> int:
    """Return the bytes of the full workload: tokens in and out, choices, weights and experts."""
    sizes = WORKLOADS["full"]
    experts = 2 * 3 * sizes.n_experts * sizes.width * sizes.inner
    return experts + sizes.n_tokens * (2 * 2 * sizes.width + (8 + 2) * sizes.n_chosen)


def flops() -> int:
    """Return the floating-point operations of a typical full draw: of assignments that fit."""
    sizes = WORKLOADS["full"]
    return 6 * sizes.n_kept * sizes.width * sizes.inner
