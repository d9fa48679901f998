"""All gradients of LN(x + W2 gelu(W1 x)) from a consistent forward pass (Kokoro, ALBERT block)."""

from dataclasses import dataclass
from typing import Any

import torch

from problems.mlp_norm.activations import gelu_tanh, gelu_tanh_derivative
from problems.mlp_norm.draws import linear_weight

SOURCE = (
    "Own work, written from public model code: the feed-forward half of an ALBERT layer, as in"
    " Kokoro's text encoder, differentiated. The workload class is named by SOL-ExecBench."
)

EPS = 1e-5


@dataclass(frozen=True)
class Sizes:
    """One workload: batch, sequence, both widths, and a factor on the block's input."""

    batch: int
    seq_len: int
    hidden_size: int = 512
    intermediate_size: int = 2_048
    scale: float = 1.0


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(64, 1_087),
    "smoke": Sizes(2, 37, hidden_size=64, intermediate_size=256),
    "heldout_1": Sizes(1, 1),
    "heldout_2": Sizes(13, 401),
    "heldout_3": Sizes(8, 512, scale=0.02),
    "heldout_4": Sizes(8, 200, hidden_size=768, intermediate_size=3_072),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw a forward pass and a gradient of its output; the seed is the caller's.

    The saved activations are the forward pass of hidden_states through both weights, without
    biases; grad_output is independent of it.
    """
    sizes = WORKLOADS[workload]
    width, inner = sizes.hidden_size, sizes.intermediate_size
    shape = (sizes.batch, sizes.seq_len, width)
    grad_output, hidden_states = (
        torch.randn(shape, dtype=torch.float32, device=device) for _ in range(2)
    )
    if sizes.scale != 1.0:
        hidden_states *= sizes.scale
    fc1_weight = linear_weight(inner, width, dtype=torch.float32, device=device)
    fc2_weight = linear_weight(width, inner, dtype=torch.float32, device=device)
    ln_weight = 1 + 0.1 * torch.randn(width, dtype=torch.float32, device=device)

    fc1_output = hidden_states @ fc1_weight.t()
    gelu_output = gelu_tanh(fc1_output)
    residual_sum = hidden_states + gelu_output @ fc2_weight.t()
    centred = residual_sum - residual_sum.mean(dim=-1, keepdim=True)
    var = centred.square().mean(dim=-1, keepdim=True)
    normalized = centred / torch.sqrt(var + EPS)
    inputs = [grad_output, hidden_states, fc1_weight, fc1_output, gelu_output, fc2_weight]
    return [*inputs, normalized, var, ln_weight, EPS]


@torch.no_grad()
def reference(  # noqa: PLR0913, PLR0917
    grad_output: torch.Tensor,
    hidden_states: torch.Tensor,
    fc1_weight: torch.Tensor,
    fc1_output: torch.Tensor,
    gelu_output: torch.Tensor,
    fc2_weight: torch.Tensor,
    normalized: torch.Tensor,
    var: torch.Tensor,
    ln_weight: torch.Tensor,
    eps: float,
) -> tuple[torch.Tensor, ...]:
    """Return seven gradients, two of them of biases that are zero in the forward pass.

    Args:
        grad_output: [batch, seq, width], float32; float64 when the anchor is computed. All other
            tensors have its dtype.
        hidden_states: as grad_output; x.
        fc1_weight: [inner, width]; W1.
        fc1_output: [batch, seq, inner]; W1 x.
        gelu_output: as fc1_output; its tanh GELU.
        fc2_weight: [width, inner]; W2.
        normalized: as grad_output; the rows of x + W2 gelu(W1 x), normalised without weight.
        var: [batch, seq, 1]; the biased variance of those rows before.
        ln_weight: [width].
        eps: added to var under the root.

    Returns:
        grad_hidden_states, grad_fc1_weight, grad_fc1_bias [inner], grad_fc2_weight,
        grad_fc2_bias [width], grad_ln_weight [width], grad_ln_bias [width].
    """
    tokens = tuple(range(grad_output.dim() - 1))
    weighted = grad_output * ln_weight
    mean = weighted.mean(dim=-1, keepdim=True)
    shared = (weighted * normalized).mean(dim=-1, keepdim=True)
    grad_sum = (weighted - mean - normalized * shared) / torch.sqrt(var + eps)
    grad_fc1 = (grad_sum @ fc2_weight) * gelu_tanh_derivative(fc1_output)
    return (
        grad_sum + grad_fc1 @ fc1_weight,
        grad_fc1.flatten(0, -2).t() @ hidden_states.flatten(0, -2),
        grad_fc1.sum(dim=tokens),
        grad_sum.flatten(0, -2).t() @ gelu_output.flatten(0, -2),
        grad_sum.sum(dim=tokens),
        (grad_output * normalized).sum(dim=tokens),
        grad_output.sum(dim=tokens),
    )


def bytes_moved() -> int:
    """Return the bytes of the full workload: inputs and gradients once, except gelu_output.

    It follows from fc1_output, so a kernel need not read it.
    """
    tokens, width, inner = _extent()
    inputs = tokens * (3 * width + inner + 1) + 2 * inner * width + width
    outputs = tokens * width + 2 * inner * width + inner + 3 * width
    return 4 * (inputs + outputs)


def flops() -> int:
    """Return the operations of the full workload's four matrix products."""
    tokens, width, inner = _extent()
    return 4 * 2 * tokens * width * inner


def _extent() -> tuple[int, int, int]:
    sizes = WORKLOADS["full"]
    return sizes.batch * sizes.seq_len, sizes.hidden_size, sizes.intermediate_size
