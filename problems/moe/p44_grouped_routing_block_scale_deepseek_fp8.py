"""One rank of a DeepSeek-V3 MoE layer: group-limited routing, block-scaled FP8 SwiGLU experts."""

from dataclasses import dataclass
from typing import Any

import torch

from problems.moe.experts import weighted_sum
from problems.moe.groups import CHOSEN_GROUPS, limit_to_best_groups
from problems.moe.margins import cut_gap, redraw_undecided
from problems.quantization.fp8_blocks import BLOCK, Fp8Blocks, dequantise

SOURCE = (
    "FlashInfer-Trace/Bench, definition"
    " moe_fp8_block_scale_ds_routing_topk8_ng8_kg4_e32_h7168_i2048; Apache-2.0."
    " Sizes and routing bias as captured, values redrawn."
)

TOP_K = 8
ROUTED_SCALING_FACTOR = 2.5
LOGITS_MEAN, LOGITS_STD = -1.6706, 0.6560
DECISION_MARGIN = 1e-4
BIAS_BASE, BIAS_HIGH = 4.9375, 4.96875
# fmt: off
HIGH_BIAS_EXPERTS = (
    3, 6, 7, 9, 10, 11, 16, 17, 18, 23, 30, 31, 36, 37, 41, 42, 43, 44, 46, 47, 48, 49, 54, 55,
    56, 58, 61, 62, 63, 66, 67, 68, 69, 72, 74, 75, 79, 80, 81, 82, 83, 84, 87, 90, 92, 96, 100,
    101, 102, 104, 105, 108, 109, 110, 112, 114, 119, 120, 123, 125, 126, 127, 131, 136, 147, 151,
    152, 153, 154, 157, 159, 167, 170, 171, 174, 183, 185, 195, 196, 197, 200, 203, 214, 216, 217,
    219, 222, 223, 226, 230, 231, 234, 235, 236, 237, 238, 240, 241, 242, 243, 253,
)
# fmt: on


@dataclass(frozen=True)
class Sizes:
    """One workload: tokens, experts of all ranks and of this one, and the experts' widths.

    `offset` is the first resident expert. `n_pairs` assignments and `n_served` tokens are what
    a typical draw of the full workload brings to this rank.
    """

    n_tokens: int
    offset: int = 32
    n_experts: int = 256
    n_local: int = 32
    width: int = 7_168
    inner: int = 2_048
    n_pairs: int = 0
    n_served: int = 0


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(14_107, n_pairs=14_987, n_served=7_400),
    "smoke": Sizes(64, offset=4, n_experts=32, n_local=4, width=256, inner=128),
    "heldout_1": Sizes(1),
    "heldout_2": Sizes(777, offset=224),
    "heldout_3": Sizes(4_096, offset=40),
    "heldout_4": Sizes(1_000, offset=96, width=2_048, inner=1_024),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw the ten inputs; the seed is the caller's.

    Tokens whose choice hangs on less than DECISION_MARGIN get new logits, so that the chosen
    experts are well defined.

    Raises:
        ValueError: some token is still undecided after the allowed rounds.
    """
    sizes = WORKLOADS[workload]
    logits = _draw_logits(torch.empty(sizes.n_tokens, sizes.n_experts, device=device))
    bias = torch.full((sizes.n_experts,), BIAS_BASE, dtype=torch.bfloat16, device=device)
    bias[[expert for expert in HIGH_BIAS_EXPERTS if expert < sizes.n_experts]] = BIAS_HIGH
    redraw_undecided(
        logits, lambda rows: _gap(rows.double(), bias), margin=DECISION_MARGIN, draw=_draw_logits
    )

    def codes(*shape: int) -> torch.Tensor:
        return torch.randn(shape, device=device).to(torch.float8_e4m3fn)

    def scales(*shape: int) -> torch.Tensor:
        return torch.rand(shape, device=device)

    local, width, inner = sizes.n_local, sizes.width, sizes.inner
    return [
        logits,
        bias,
        codes(sizes.n_tokens, width),
        scales(width // BLOCK, sizes.n_tokens),
        codes(local, 2 * inner, width),
        scales(local, 2 * inner // BLOCK, width // BLOCK),
        codes(local, width, inner),
        scales(local, width // BLOCK, inner // BLOCK),
        sizes.offset,
        ROUTED_SCALING_FACTOR,
    ]


@torch.no_grad()
def reference(  # noqa: PLR0913, PLR0917
    routing_logits: torch.Tensor,
    routing_bias: torch.Tensor,
    hidden_states: torch.Tensor,
    hidden_states_scale: torch.Tensor,
    gemm1_weights: torch.Tensor,
    gemm1_weights_scale: torch.Tensor,
    gemm2_weights: torch.Tensor,
    gemm2_weights_scale: torch.Tensor,
    local_expert_offset: int,
    routed_scaling_factor: float,
) -> torch.Tensor:
    """Return what the resident experts add to each token, [tokens, width], in the bias's dtype.

    All is computed in the dtype of the logits. Tokens that chose no resident expert get zeros.

    Args:
        routing_logits: [tokens, experts], float32; float64 when the anchor is computed.
        routing_bias: [experts], bfloat16 or float64; it steers the choice and not the weights.
        hidden_states: [tokens, width], float8_e4m3fn.
        hidden_states_scale: [width / 128, tokens], the dtype of the logits; one per 128
            neighbours of a token.
        gemm1_weights: [resident, 2 * inner, width], float8_e4m3fn; first the rows of the up
            projection, then those of the gate.
        gemm1_weights_scale: [resident, 2 * inner / 128, width / 128], the dtype of the logits;
            one per tile of 128 x 128.
        gemm2_weights: [resident, width, inner], float8_e4m3fn.
        gemm2_weights_scale: [resident, width / 128, inner / 128], the dtype of the logits.
        local_expert_offset: which of all experts is the first resident one.
        routed_scaling_factor: what a token's eight weights sum to, resident experts or not.
    """
    wide = torch.promote_types(routing_logits.dtype, torch.float32)
    scores, admissible, _ = _score(routing_logits.to(wide), routing_bias)
    selected = admissible.topk(TOP_K, dim=-1, sorted=False).indices
    weights = scores.gather(-1, selected)
    weights = weights / (weights.sum(dim=-1, keepdim=True) + 1e-20) * routed_scaling_factor

    def expert(number: int, tokens: torch.Tensor) -> torch.Tensor:
        first = Fp8Blocks(gemm1_weights[number], gemm1_weights_scale[number])
        second = Fp8Blocks(gemm2_weights[number], gemm2_weights_scale[number])
        up, gate = (tokens @ dequantise(first, wide).t()).chunk(2, dim=-1)
        # exp may be infinite here; the quotient is then -0, as it should be.
        return (gate / (1 + torch.exp(-gate)) * up) @ dequantise(second, wide).t()

    output = weighted_sum(
        dequantise(Fp8Blocks(hidden_states, hidden_states_scale.t()), wide),
        selected - local_expert_offset,
        weights,
        n_experts=gemm1_weights.shape[0],
        expert=expert,
    )
    return output.to(routing_bias.dtype)


def _score(
    logits: torch.Tensor, bias: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return scores, biased scores with closed groups at float32's minimum, and group scores."""
    scores = 1 / (1 + torch.exp(-logits))
    biased = scores + bias.to(logits.dtype)
    return scores, *limit_to_best_groups(biased, closed=torch.finfo(torch.float32).min)


def _draw_logits(rows: torch.Tensor) -> torch.Tensor:
    drawn = torch.randn_like(rows) * LOGITS_STD + LOGITS_MEAN
    return drawn.to(torch.bfloat16).to(rows.dtype)


def _gap(logits: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    _, admissible, group_scores = _score(logits, bias)
    return torch.minimum(cut_gap(group_scores, CHOSEN_GROUPS), cut_gap(admissible, TOP_K))


def bytes_moved() -> int:
    """Return the bytes of a typical full draw: of the tokens only those served are read."""
    sizes = WORKLOADS["full"]
    weights = 3 * sizes.n_local * sizes.inner * sizes.width
    router = 4 * sizes.n_tokens * sizes.n_experts + 2 * sizes.n_experts
    tokens = sizes.n_served * (sizes.width + 4 * sizes.width // BLOCK)
    return router + tokens + weights + 4 * weights // BLOCK**2 + 2 * sizes.n_tokens * sizes.width


def flops() -> int:
    """Return the floating-point operations of the experts' products in a typical full draw."""
    sizes = WORKLOADS["full"]
    return 6 * sizes.n_pairs * sizes.width * sizes.inner
