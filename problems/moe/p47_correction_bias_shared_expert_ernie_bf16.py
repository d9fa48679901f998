"""ERNIE MoE block: softmax router with a bias for the choice alone, 64 experts and a shared one."""

from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional

from problems.moe.draws import weights
from problems.moe.experts import weighted_sum
from problems.moe.margins import cut_gap, redraw_undecided

SOURCE = (
    "Re-authored from public model code (ERNIE 4.5's MoE block);"
    " workload class named by SOL-ExecBench; own work of this project."
)

TOP_K = 8
SMOKE_TOP_K = 4
BIAS_STD = 0.02
NORM_MIN = 1e-10
DECISION_MARGIN = 1e-4


@dataclass(frozen=True)
class Sizes:
    """One workload: batch, sequence, experts and the widths.

    `top_ks` are the numbers of choices per token at which the draw has its margins.
    """

    batch: int
    sequence: int = 128
    n_experts: int = 64
    width: int = 8_192
    inner: int = 3_584
    shared_inner: int = 7_168
    top_ks: tuple[int, ...] = (TOP_K,)


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(64),
    "smoke": Sizes(
        4,
        sequence=16,
        n_experts=16,
        width=128,
        inner=64,
        shared_inner=128,
        top_ks=(SMOKE_TOP_K, TOP_K),
    ),
    "heldout_1": Sizes(1, sequence=1),
    "heldout_2": Sizes(3, sequence=777),
    "heldout_3": Sizes(4, n_experts=32, width=2_048, inner=1_024, shared_inner=2_048),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw the ten inputs; the seed is the caller's.

    Tokens whose choice hangs on less than DECISION_MARGIN are drawn again, so that the chosen
    experts are well defined.

    Raises:
        ValueError: some token is still undecided after the allowed rounds.
    """
    sizes = WORKLOADS[workload]
    experts, width, inner, shared = sizes.n_experts, sizes.width, sizes.inner, sizes.shared_inner
    bf16 = torch.bfloat16
    hidden_states = torch.randn(sizes.batch, sizes.sequence, width, dtype=bf16, device=device)
    gate_weight = weights(experts, width, fan_in=width, dtype=torch.float32, device=device)
    bias = BIAS_STD * torch.randn(1, experts, device=device)
    router = gate_weight.double(), bias.double()

    def gap(rows: torch.Tensor) -> torch.Tensor:
        biased = _score(rows.double(), *router)[2]
        return torch.stack([cut_gap(biased, k) for k in sizes.top_ks]).amin(dim=0)

    redraw_undecided(hidden_states.view(-1, width), gap, margin=DECISION_MARGIN)
    return [
        hidden_states,
        gate_weight,
        bias,
        weights(experts, inner, width, fan_in=width, dtype=bf16, device=device),
        weights(experts, inner, width, fan_in=width, dtype=bf16, device=device),
        weights(experts, width, inner, fan_in=inner, dtype=bf16, device=device),
        weights(shared, width, fan_in=width, dtype=bf16, device=device),
        weights(shared, width, fan_in=width, dtype=bf16, device=device),
        weights(width, shared, fan_in=shared, dtype=bf16, device=device),
        NORM_MIN,
    ]


@torch.no_grad()
def reference(  # noqa: PLR0913, PLR0917
    hidden_states: torch.Tensor,
    gate_weight: torch.Tensor,
    e_score_correction_bias: torch.Tensor,
    expert_gate: torch.Tensor,
    expert_up: torch.Tensor,
    expert_down: torch.Tensor,
    shared_gate: torch.Tensor,
    shared_up: torch.Tensor,
    shared_down: torch.Tensor,
    norm_min: float,
    *,
    top_k: int = TOP_K,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (output, router_logits): the block's result and what the router chose by.

    The router works in the dtype of gate_weight, all else in that of hidden_states, each step
    rounded; a token's experts add up by ascending number.

    Args:
        hidden_states: [batch, sequence, width], bfloat16; float64 when the anchor is computed.
        gate_weight: [experts, width], float32 or float64.
        e_score_correction_bias: [1, experts], likewise; it steers the choice, not the weights.
        expert_gate: [experts, inner, width], the dtype of hidden_states, as all that follow.
        expert_up: [experts, inner, width].
        expert_down: [experts, width, inner].
        shared_gate: [shared inner, width].
        shared_up: [shared inner, width].
        shared_down: [width, shared inner].
        norm_min: the least sum that a token's weights are divided by.
        top_k: experts per token.

    Returns:
        output: shaped and typed as hidden_states.
        router_logits: [batch * sequence, experts], the dtype of gate_weight.
    """
    tokens = hidden_states.flatten(0, 1)
    logits, probs, biased = _score(tokens, gate_weight, e_score_correction_bias)
    selected = biased.topk(top_k, dim=-1).indices
    chosen = probs.gather(-1, selected)
    chosen = chosen / chosen.sum(dim=-1, keepdim=True).clamp(min=norm_min)
    routed = weighted_sum(
        tokens,
        selected,
        chosen.to(tokens.dtype),
        n_experts=expert_gate.shape[0],
        expert=lambda e, mine: _feed_forward(mine, expert_gate[e], expert_up[e], expert_down[e]),
    )
    output = routed + _feed_forward(tokens, shared_gate, shared_up, shared_down)
    return output.view(hidden_states.shape), logits


def _score(
    tokens: torch.Tensor, gate_weight: torch.Tensor, bias: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return logits, probabilities and biased probabilities, each [tokens, experts]."""
    logits = tokens.to(gate_weight.dtype) @ gate_weight.t()
    probs = torch.softmax(logits, dim=-1)
    return logits, probs, probs + bias


def _feed_forward(
    tokens: torch.Tensor, gate: torch.Tensor, up: torch.Tensor, down: torch.Tensor
) -> torch.Tensor:
    return (functional.silu(tokens @ gate.t()) * (tokens @ up.t())) @ down.t()


def bytes_moved() -> int:
    """Return the bytes of the full workload: all weights, tokens in and out, and the logits."""
    sizes = WORKLOADS["full"]
    n_tokens = sizes.batch * sizes.sequence
    inner = sizes.n_experts * sizes.inner + sizes.shared_inner
    router = 4 * sizes.n_experts * (sizes.width + 1)
    tokens = n_tokens * (2 * 2 * sizes.width + 4 * sizes.n_experts)
    return 2 * 3 * inner * sizes.width + router + tokens


def flops() -> int:
    """Return the floating-point operations of all products in the full workload."""
    sizes = WORKLOADS["full"]
    per_token = 3 * (TOP_K * sizes.inner + sizes.shared_inner) + sizes.n_experts
    return 2 * sizes.batch * sizes.sequence * per_token * sizes.width
