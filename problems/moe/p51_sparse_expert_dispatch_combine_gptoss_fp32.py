"""gpt-oss experts: interleaved gate and up, clamped GLU with up + 1, biases, weighted scatter."""

import math
from dataclasses import dataclass
from typing import Any

import torch

from problems.moe.draws import weights
from problems.moe.experts import weighted_sum

SOURCE = (
    "Re-authored from public model code (gpt-oss's experts);"
    " workload class named by SOL-ExecBench; own work of this project."
)

TOP_K = 4
GLU_ALPHA = 1.702
GLU_LIMIT = 7.0
GATE_UP_BIAS_STD = 0.5
DOWN_BIAS_STD = 0.1


@dataclass(frozen=True)
class Sizes:
    """One workload: tokens, experts, the width inside and out, and deviations of the draws."""

    n_tokens: int
    n_experts: int = 128
    width: int = 2_880
    gate_up_std: float = 0.03
    hidden_std: float = 1.0


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(16_384),
    "smoke": Sizes(64, n_experts=16, width=96, gate_up_std=1.6 / math.sqrt(96)),
    "smoke_2": Sizes(64, n_experts=16, width=96, gate_up_std=1.6 / math.sqrt(96), hidden_std=4.0),
    "heldout_1": Sizes(5),
    "heldout_2": Sizes(3_001, hidden_std=4.0),
    "heldout_3": Sizes(2_048, n_experts=32, width=1_440, gate_up_std=0.03 * math.sqrt(2)),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw the seven inputs; the seed is the caller's."""
    sizes = WORKLOADS[workload]
    tokens, experts, width = sizes.n_tokens, sizes.n_experts, sizes.width

    def normal(*shape: int, std: float) -> torch.Tensor:
        return torch.randn(shape, device=device).mul_(std)

    hidden_states = normal(tokens, width, std=sizes.hidden_std)
    logits = normal(tokens, experts, std=1.0)
    return [
        hidden_states,
        logits.topk(TOP_K, dim=-1).indices,
        torch.softmax(logits, dim=-1),
        normal(experts, width, 2 * width, std=sizes.gate_up_std),
        normal(experts, 2 * width, std=GATE_UP_BIAS_STD),
        weights(experts, width, width, fan_in=width, dtype=torch.float32, device=device),
        normal(experts, width, std=DOWN_BIAS_STD),
    ]


@torch.no_grad()
def reference(  # noqa: PLR0913, PLR0917
    hidden_states: torch.Tensor,
    router_indices: torch.Tensor,
    routing_weights: torch.Tensor,
    gate_up_projection: torch.Tensor,
    gate_up_projection_bias: torch.Tensor,
    down_projection: torch.Tensor,
    down_projection_bias: torch.Tensor,
) -> torch.Tensor:
    """Return each token's weighted sum over its experts, shaped and typed as hidden_states.

    Args:
        hidden_states: [tokens, width], float32; float64 when the anchor is computed.
        router_indices: [tokens, choices], int64, distinct in each row.
        routing_weights: [tokens, experts], the dtype of hidden_states, as all that follow; the
            weight of every expert, of which those chosen count, as they stand.
        gate_up_projection: [experts, width, 2 * inner]; a token multiplies from the left. Even
            columns give the gate, odd ones up.
        gate_up_projection_bias: [experts, 2 * inner].
        down_projection: [experts, inner, width].
        down_projection_bias: [experts, width]; added before the weighting.
    """

    def expert(number: int, tokens: torch.Tensor) -> torch.Tensor:
        both = tokens @ gate_up_projection[number] + gate_up_projection_bias[number]
        gate = both[:, ::2].clamp(max=GLU_LIMIT)
        up = both[:, 1::2].clamp(-GLU_LIMIT, GLU_LIMIT)
        inner = (up + 1) * (gate * torch.sigmoid(GLU_ALPHA * gate))
        return inner @ down_projection[number] + down_projection_bias[number]

    return weighted_sum(
        hidden_states,
        router_indices,
        routing_weights.gather(-1, router_indices),
        n_experts=gate_up_projection.shape[0],
        expert=expert,
    )


def bytes_moved() -> int:
    """Return the bytes of the full workload; of routing_weights only those chosen."""
    sizes = WORKLOADS["full"]
    experts = 4 * 3 * sizes.n_experts * sizes.width * (sizes.width + 1)
    return experts + sizes.n_tokens * (2 * 4 * sizes.width + (8 + 4) * TOP_K)


def flops() -> int:
    """Return the floating-point operations of both products in the full workload."""
    sizes = WORKLOADS["full"]
    return 2 * 3 * sizes.n_tokens * TOP_K * sizes.width * sizes.width
