"""Router backward: from gradients of top-k weights, dispatch mask and router output (Qwen3)."""

from dataclasses import dataclass
from typing import Any

import torch

from problems.moe.draws import weights

SOURCE = (
    "Re-authored from public model code (Qwen3-Coder-30B's router, differentiated);"
    " workload class named by SOL-ExecBench; own work of this project."
)

GRADIENT_STD = 0.1


@dataclass(frozen=True)
class Sizes:
    """One workload: tokens, experts, choices per token, and the model's width."""

    n_tokens: int
    n_experts: int = 128
    n_chosen: int = 8
    width: int = 2_048


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(65_536),
    "smoke": Sizes(256, n_experts=32, width=128),
    "heldout_1": Sizes(7),
    "heldout_2": Sizes(10_007),
    "heldout_3": Sizes(4_096, n_experts=64, n_chosen=6, width=1_024),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw the eight inputs; the seed is the caller's.

    The probabilities come from logits of their own, not from hidden_states and gate_weight.
    """
    sizes = WORKLOADS[workload]
    tokens, experts, chosen = sizes.n_tokens, sizes.n_experts, sizes.n_chosen

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, dtype=torch.bfloat16, device=device)

    hidden_states = normal(tokens, sizes.width)
    gate_weight = weights(
        experts, sizes.width, fan_in=sizes.width, dtype=torch.bfloat16, device=device
    )
    routing_probs = torch.softmax(normal(tokens, experts).float(), dim=-1)
    best = routing_probs.topk(chosen, dim=-1)
    return [
        hidden_states,
        gate_weight,
        routing_probs,
        best.indices,
        best.values.sum(dim=-1, keepdim=True),
        GRADIENT_STD * normal(tokens, chosen),
        GRADIENT_STD * normal(experts, chosen, tokens),
        GRADIENT_STD * normal(tokens, experts),
    ]


@torch.no_grad()
def reference(  # noqa: PLR0913, PLR0917
    hidden_states: torch.Tensor,
    gate_weight: torch.Tensor,
    routing_probs: torch.Tensor,
    selected_experts: torch.Tensor,
    routing_weights_sum: torch.Tensor,
    grad_routing_weights: torch.Tensor,
    grad_expert_mask: torch.Tensor,
    grad_router_logits: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (grad_hidden_states, grad_gate_weight), shaped and typed as what they belong to.

    The gradient of the logits is computed in the dtype of the probabilities and rounded to that
    of hidden_states before either product.

    Args:
        hidden_states: [tokens, width], bfloat16; float64 when the anchor is computed.
        gate_weight: [experts, width], the dtype of hidden_states.
        routing_probs: [tokens, experts], float32 or float64; softmax of the logits.
        selected_experts: [tokens, choices], int64, distinct in each row.
        routing_weights_sum: [tokens, 1], the dtype of the probabilities; sum of those chosen.
        grad_routing_weights: [tokens, choices], the dtype of hidden_states; of the chosen
            probabilities divided by their sum.
        grad_expert_mask: [experts, choices, tokens], likewise; what stands at a token's chosen
            experts passes straight through to their probabilities.
        grad_router_logits: [tokens, experts], likewise; of the softmax's output, whatever the name.
    """
    wide = torch.promote_types(routing_probs.dtype, torch.float32)
    probs, total = routing_probs.to(wide), routing_weights_sum.to(wide)
    chosen, gradient = probs.gather(-1, selected_experts), grad_routing_weights.to(wide)
    mean = (gradient * chosen).sum(dim=-1, keepdim=True) / total
    of_chosen = gradient / total - mean / total

    n_tokens, n_chosen = selected_experts.shape
    tokens = torch.arange(n_tokens, device=probs.device).unsqueeze(-1)
    slots = torch.arange(n_chosen, device=probs.device)
    of_probs = torch.zeros_like(probs)
    of_probs.scatter_add_(-1, selected_experts, of_chosen)
    through_mask = grad_expert_mask[selected_experts, slots, tokens].to(wide)
    of_probs.scatter_add_(-1, selected_experts, through_mask)
    of_probs += grad_router_logits.to(wide)

    of_logits = probs * (of_probs - (probs * of_probs).sum(dim=-1, keepdim=True))
    of_logits = of_logits.to(hidden_states.dtype)
    return of_logits @ gate_weight, of_logits.t() @ hidden_states


def bytes_moved() -> int:
    """Return the bytes of the full workload; of grad_expert_mask only the chosen elements."""
    sizes = WORKLOADS["full"]
    wide = 2 * 2 * sizes.width + (4 + 2) * sizes.n_experts + 4
    return sizes.n_tokens * (wide + (8 + 2 + 2) * sizes.n_chosen) + (
        2 * 2 * sizes.n_experts * sizes.width
    )


def flops() -> int:
    """Return the floating-point operations of both products in the full workload."""
    sizes = WORKLOADS["full"]
    return 2 * 2 * sizes.n_tokens * sizes.n_experts * sizes.width
