"""Sigmoid router with biased, group-limited top-8 selection and rescaled weights (Ring-flash)."""

import math
from dataclasses import dataclass
from typing import Any

import torch

from problems.moe.groups import CHOSEN_GROUPS, limit_to_best_groups
from problems.moe.margins import cut_gap, order_gap, redraw_undecided
from problems.tolerance import Default, Exact, Tolerance

SOURCE = (
    "Own work, written from public model code: the gate of Ling/Ring-flash (Bailing MoE v2)."
    " The workload class is named by SOL-ExecBench."
)

TOLERANCE = Tolerance((Exact(), Default()))

EXPERTS_PER_TOKEN = 8
ROUTED_SCALING_FACTOR = 2.5
DECISION_MARGIN = 1e-4


@dataclass(frozen=True)
class Sizes:
    """One workload: tokens, experts, model width, and a factor on the expert bias."""

    n_tokens: int
    n_experts: int = 256
    gating_dim: int = 4_096
    bias_scale: float = 1.0


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(16_384),
    "smoke": Sizes(256, n_experts=64, gating_dim=256),
    "heldout_1": Sizes(1),
    "heldout_2": Sizes(5_003, bias_scale=0.05),
    "heldout_3": Sizes(4_096, n_experts=128, gating_dim=2_048),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw hidden_states, weight, expert_bias and the factor; the seed is the caller's.

    Tokens whose choice hangs on less than DECISION_MARGIN are drawn again, so that the chosen
    experts and their order are well defined.

    Raises:
        ValueError: some token is still undecided after REDRAW_LIMIT rounds.
    """
    sizes = WORKLOADS[workload]
    shape = (sizes.n_tokens, sizes.gating_dim)
    hidden_states = torch.randn(shape, dtype=torch.bfloat16, device=device)
    weight = torch.randn(
        sizes.n_experts, sizes.gating_dim, dtype=torch.bfloat16, device=device
    ) / math.sqrt(sizes.gating_dim)
    expert_bias = torch.randn(sizes.n_experts, dtype=torch.bfloat16, device=device)
    if sizes.bias_scale != 1.0:
        expert_bias *= sizes.bias_scale
    _redraw_undecided(hidden_states, weight, expert_bias)
    return [hidden_states, weight, expert_bias, ROUTED_SCALING_FACTOR]


@torch.no_grad()
def reference(
    hidden_states: torch.Tensor,
    weight: torch.Tensor,
    expert_bias: torch.Tensor,
    routed_scaling_factor: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (topk_indices, topk_weights) of each token's eight experts, best first.

    Args:
        hidden_states: [tokens, width], bfloat16; float64 when the anchor is computed.
        weight: [experts, width], the dtype of hidden_states.
        expert_bias: [experts], likewise; it steers the choice and not the weights.
        routed_scaling_factor: what a token's eight weights sum to.

    Returns:
        topk_indices: [tokens, 8], int64, by descending biased score.
        topk_weights: [tokens, 8], float32 (float64 in the anchor).
    """
    scores, admissible, _ = _score(hidden_states, weight, expert_bias)
    topk_indices = admissible.topk(EXPERTS_PER_TOKEN, dim=-1).indices
    chosen = scores.gather(-1, topk_indices)
    topk_weights = chosen / (chosen.sum(dim=-1, keepdim=True) + 1e-20)
    return topk_indices, topk_weights * routed_scaling_factor


def _score(
    hidden_states: torch.Tensor, weight: torch.Tensor, expert_bias: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return scores, biased scores with unchosen groups at -inf, and the groups' scores."""
    wide = torch.promote_types(hidden_states.dtype, torch.float32)
    scores = torch.sigmoid(hidden_states.to(wide) @ weight.to(wide).t())
    biased = scores + expert_bias.to(wide)
    return scores, *limit_to_best_groups(biased, closed=-torch.inf)


def _redraw_undecided(
    hidden_states: torch.Tensor, weight: torch.Tensor, expert_bias: torch.Tensor
) -> None:
    router = weight.double(), expert_bias.double()

    def gap(rows: torch.Tensor) -> torch.Tensor:
        _, admissible, group_scores = _score(rows.double(), *router)
        return torch.minimum(
            cut_gap(group_scores, CHOSEN_GROUPS), order_gap(admissible, EXPERTS_PER_TOKEN)
        )

    redraw_undecided(hidden_states, gap, margin=DECISION_MARGIN)


def bytes_moved() -> int:
    """Return the bytes of the full workload: tokens, router, bias and both outputs once."""
    sizes = WORKLOADS["full"]
    router = 2 * sizes.n_experts * (sizes.gating_dim + 1)
    return router + sizes.n_tokens * (2 * sizes.gating_dim + (8 + 4) * EXPERTS_PER_TOKEN)


def flops() -> int:
    """Return the floating-point operations of the router's product in the full workload."""
    sizes = WORKLOADS["full"]
    return 2 * sizes.n_tokens * sizes.n_experts * sizes.gating_dim
