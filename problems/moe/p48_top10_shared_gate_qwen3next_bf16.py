"""Qwen3-Next MoE block: ten of 512 small experts, plus a shared expert behind a sigmoid gate."""

from dataclasses import dataclass
from typing import Any

import torch

from problems.moe.draws import weights
from problems.moe.experts import weighted_sum
from problems.moe.margins import cut_gap, redraw_undecided

SOURCE = (
    "Re-authored from public model code (Qwen3-Next's sparse MoE block);"
    " workload class named by SOL-ExecBench; own work of this project."
)

TOP_K = 10
DECISION_MARGIN = 1e-5


@dataclass(frozen=True)
class Sizes:
    """One workload: batch, sequence, experts and the widths."""

    batch: int
    sequence: int
    n_experts: int = 512
    width: int = 2_048
    inner: int = 512
    shared_inner: int = 512


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(64, 613),
    "smoke": Sizes(4, 24, n_experts=32, width=128, inner=64, shared_inner=64),
    "heldout_1": Sizes(1, 1),
    "heldout_2": Sizes(7, 501),
    "heldout_3": Sizes(4, 256, n_experts=128, width=1_024),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw the nine inputs; the seed is the caller's.

    Tokens whose choice hangs on less than DECISION_MARGIN are drawn again, so that the chosen
    experts are well defined.

    Raises:
        ValueError: some token is still undecided after the allowed rounds.
    """
    sizes = WORKLOADS[workload]
    width, inner, shared = sizes.width, sizes.inner, sizes.shared_inner

    def scaled(*shape: int) -> torch.Tensor:
        return weights(*shape, fan_in=shape[-1], dtype=torch.bfloat16, device=device)

    hidden_states = torch.randn(
        sizes.batch, sizes.sequence, width, dtype=torch.bfloat16, device=device
    )
    router_weight = scaled(sizes.n_experts, width)
    wide = router_weight.double()
    redraw_undecided(
        hidden_states.view(-1, width),
        lambda rows: cut_gap(_score(rows.double(), wide)[1], TOP_K),
        margin=DECISION_MARGIN,
    )
    return [
        hidden_states,
        router_weight,
        scaled(sizes.n_experts, inner, width),
        scaled(sizes.n_experts, inner, width),
        scaled(sizes.n_experts, width, inner),
        scaled(shared, width),
        scaled(shared, width),
        scaled(width, shared),
        scaled(1, width),
    ]


@torch.no_grad()
def reference(  # noqa: PLR0913, PLR0917
    hidden_states: torch.Tensor,
    router_weight: torch.Tensor,
    expert_gate: torch.Tensor,
    expert_up: torch.Tensor,
    expert_down: torch.Tensor,
    shared_gate: torch.Tensor,
    shared_up: torch.Tensor,
    shared_down: torch.Tensor,
    shared_expert_gate: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (output, router_logits): the block's result and what the router chose by.

    The router works in float32 (float64 in the anchor), all else in the dtype of hidden_states,
    each step rounded; a token's experts add up by ascending number. All inputs have one dtype.

    Args:
        hidden_states: [batch, sequence, width], bfloat16; float64 when the anchor is computed.
        router_weight: [experts, width].
        expert_gate: [experts, inner, width].
        expert_up: [experts, inner, width].
        expert_down: [experts, width, inner].
        shared_gate: [shared inner, width].
        shared_up: [shared inner, width].
        shared_down: [width, shared inner].
        shared_expert_gate: [1, width]; its product's sigmoid scales the shared expert.

    Returns:
        output: shaped as hidden_states.
        router_logits: [batch * sequence, experts].
    """
    tokens = hidden_states.flatten(0, 1)
    logits, probs = _score(tokens, router_weight)
    chosen, selected = probs.topk(TOP_K, dim=-1)
    chosen = chosen / chosen.sum(dim=-1, keepdim=True)
    routed = weighted_sum(
        tokens,
        selected,
        chosen.to(tokens.dtype),
        n_experts=expert_gate.shape[0],
        expert=lambda e, mine: _feed_forward(mine, expert_gate[e], expert_up[e], expert_down[e]),
    )
    shared = _feed_forward(tokens, shared_gate, shared_up, shared_down)
    output = routed + torch.sigmoid(tokens @ shared_expert_gate.t()) * shared
    return output.view(hidden_states.shape), logits.to(hidden_states.dtype)


def _score(tokens: torch.Tensor, router_weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return logits and probabilities, each [tokens, experts], float32 or float64."""
    wide = torch.promote_types(tokens.dtype, torch.float32)
    logits = tokens.to(wide) @ router_weight.to(wide).t()
    return logits, torch.softmax(logits, dim=-1)


def _feed_forward(
    tokens: torch.Tensor, gate: torch.Tensor, up: torch.Tensor, down: torch.Tensor
) -> torch.Tensor:
    gated = tokens @ gate.t()
    # Not functional.silu: the sigmoid is rounded before the product.
    return (gated * torch.sigmoid(gated) * (tokens @ up.t())) @ down.t()


def bytes_moved() -> int:
    """Return the bytes of the full workload: all weights, tokens in and out, and the logits."""
    sizes = WORKLOADS["full"]
    n_tokens = sizes.batch * sizes.sequence
    inner = sizes.n_experts * sizes.inner + sizes.shared_inner
    rows = 3 * inner + sizes.n_experts + 1
    return 2 * rows * sizes.width + 2 * n_tokens * (2 * sizes.width + sizes.n_experts)


def flops() -> int:
    """Return the floating-point operations of all products in the full workload."""
    sizes = WORKLOADS["full"]
    per_token = 3 * (TOP_K * sizes.inner + sizes.shared_inner) + sizes.n_experts + 1
    return 2 * sizes.batch * sizes.sequence * per_token * sizes.width
