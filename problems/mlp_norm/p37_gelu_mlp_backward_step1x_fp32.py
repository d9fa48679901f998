"""Gradients of a biased two-layer tanh-GELU block from saved activations (Step1X)."""

from dataclasses import dataclass
from typing import Any

import torch

from problems.mlp_norm.activations import gelu_tanh_derivative
from problems.mlp_norm.draws import linear_weight

SOURCE = (
    "Own work, written from public model code: the feed-forward block of Step1X's image"
    " transformer, differentiated. The workload class is named by SOL-ExecBench."
)


@dataclass(frozen=True)
class Sizes:
    """One workload: batch, sequence, and the widths of the model and of the hidden layer."""

    batch: int
    seq_len: int
    hidden_size: int = 2_048
    intermediate_size: int = 8_192


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(64, 128),
    "smoke": Sizes(2, 32, hidden_size=96, intermediate_size=384),
    "heldout_1": Sizes(1, 77),
    "heldout_2": Sizes(5, 1_000),
    "heldout_3": Sizes(4, 256, hidden_size=1_536, intermediate_size=6_144),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw grad_output, x, both weights, pre_act and act; the seed is the caller's.

    The saved activations belong to no forward pass: pre_act and act are drawn independently.
    """
    sizes = WORKLOADS[workload]
    width, inner = sizes.hidden_size, sizes.intermediate_size

    def activation(size: int) -> torch.Tensor:
        shape = (sizes.batch, sizes.seq_len, size)
        return torch.randn(shape, dtype=torch.float32, device=device)

    grad_output, x = activation(width), activation(width)
    fc1_weight = linear_weight(inner, width, dtype=torch.float32, device=device)
    fc2_weight = linear_weight(width, inner, dtype=torch.float32, device=device)
    return [grad_output, x, fc1_weight, fc2_weight, activation(inner), activation(inner)]


@torch.no_grad()
def reference(
    grad_output: torch.Tensor,
    x: torch.Tensor,
    fc1_weight: torch.Tensor,
    fc2_weight: torch.Tensor,
    pre_act: torch.Tensor,
    act: torch.Tensor,
) -> tuple[torch.Tensor, ...]:
    """Return the gradients of act @ fc2_weight^T + bias, where act = gelu(pre_act).

    The saved activations are used as given; GELU is the tanh form.

    Args:
        grad_output: [batch, seq, width], float32; float64 when the anchor is computed. All other
            inputs have its dtype.
        x: as grad_output; the block's input, from which pre_act was projected.
        fc1_weight: [inner, width].
        fc2_weight: [width, inner].
        pre_act: [batch, seq, inner], before the activation.
        act: as pre_act; the saved gelu(pre_act).

    Returns:
        grad_x, grad_fc1_weight, grad_fc1_bias [inner], grad_fc2_weight, grad_fc2_bias [width].
    """
    tokens = tuple(range(grad_output.dim() - 1))
    grad_pre_act = (grad_output @ fc2_weight) * gelu_tanh_derivative(pre_act)
    return (
        grad_pre_act @ fc1_weight,
        grad_pre_act.flatten(0, -2).t() @ x.flatten(0, -2),
        grad_pre_act.sum(dim=tokens),
        grad_output.flatten(0, -2).t() @ act.flatten(0, -2),
        grad_output.sum(dim=tokens),
    )


def bytes_moved() -> int:
    """Return the bytes of the full workload: every input and every gradient once."""
    tokens, width, inner = _extent()
    activations = tokens * (3 * width + 2 * inner)
    return 4 * (activations + 4 * inner * width + inner + width)


def flops() -> int:
    """Return the operations of the full workload's four matrix products."""
    tokens, width, inner = _extent()
    return 4 * 2 * tokens * width * inner


def _extent() -> tuple[int, int, int]:
    sizes = WORKLOADS["full"]
    return sizes.batch * sizes.seq_len, sizes.hidden_size, sizes.intermediate_size
