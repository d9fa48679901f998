"""Gradients of a SwiGLU block for its input and three weights, from saved activations (Hermes)."""

from dataclasses import dataclass
from typing import Any

import torch

from problems.mlp_norm.activations import silu_derivative
from problems.mlp_norm.draws import linear_weight

SOURCE = (
    "Own work, written from public model code: the feed-forward block of Llama 3.1 405B, on which"
    " Hermes is tuned, differentiated. The workload class is named by SOL-ExecBench."
)

ANCHOR_COLUMNS = 4_096


@dataclass(frozen=True)
class Sizes:
    """One workload: batch, sequence, and the widths of the model and of the hidden layer."""

    batch: int
    seq_len: int
    hidden_size: int = 16_384
    intermediate_size: int = 53_248


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(64, 128),
    "smoke": Sizes(2, 32, hidden_size=128, intermediate_size=416),
    "heldout_1": Sizes(1, 777),
    "heldout_2": Sizes(3, 1_024),
    "heldout_3": Sizes(4, 256, hidden_size=4_096, intermediate_size=14_336),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw the eight inputs of the reference, in its order; the seed is the caller's.

    The saved activations belong to no forward pass: gate, up and act are drawn independently.
    """
    sizes = WORKLOADS[workload]
    width, inner = sizes.hidden_size, sizes.intermediate_size

    def activation(size: int) -> torch.Tensor:
        shape = (sizes.batch, sizes.seq_len, size)
        return torch.randn(shape, dtype=torch.bfloat16, device=device)

    def weight(n_out: int, n_in: int) -> torch.Tensor:
        return linear_weight(n_out, n_in, dtype=torch.bfloat16, device=device)

    activations = [activation(size) for size in (width, width, inner, inner, inner)]
    return [*activations, weight(inner, width), weight(inner, width), weight(width, inner)]


@torch.no_grad()
def reference(  # noqa: PLR0913, PLR0917
    grad_output: torch.Tensor,
    x: torch.Tensor,
    gate: torch.Tensor,
    up: torch.Tensor,
    act: torch.Tensor,
    gate_weight: torch.Tensor,
    up_weight: torch.Tensor,
    down_weight: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the gradients of (act * up) @ down_weight^T, where act = silu(gate).

    The saved activations are used as given. Every product is rounded to the input dtype; only the
    derivative of SiLU is formed in float32.

    Args:
        grad_output: [batch, seq, width], bfloat16; float64 when the anchor is computed. All other
            inputs have its dtype.
        x: as grad_output; the block's input, from which gate and up were projected.
        gate: [batch, seq, inner], before the activation.
        up: as gate.
        act: as gate; the saved silu(gate).
        gate_weight: [inner, width].
        up_weight: [inner, width].
        down_weight: [width, inner].

    Returns:
        grad_x, grad_gate_weight, grad_up_weight, grad_down_weight: each the shape of what it is
        the gradient of, in the dtype of the inputs.
    """
    wide = torch.promote_types(gate.dtype, torch.float32)
    grad_hidden = grad_output @ down_weight
    grad_act, grad_up = grad_hidden * up, grad_hidden * act
    grad_gate = (grad_act.to(wide) * silu_derivative(gate.to(wide))).to(gate.dtype)
    grad_x = grad_gate @ gate_weight + grad_up @ up_weight
    return (
        grad_x,
        _weight_gradient(grad_gate, x),
        _weight_gradient(grad_up, x),
        _weight_gradient(grad_output, act * up),
    )


def _weight_gradient(grad: torch.Tensor, entering: torch.Tensor) -> torch.Tensor:
    """Return the sum over tokens of outer(grad, entering): [last axis of grad, of entering]."""
    return grad.flatten(0, -2).t() @ entering.flatten(0, -2)


@torch.no_grad()
def anchor(  # noqa: PLR0913, PLR0917
    grad_output: torch.Tensor,
    x: torch.Tensor,
    gate: torch.Tensor,
    up: torch.Tensor,
    act: torch.Tensor,
    gate_weight: torch.Tensor,
    up_weight: torch.Tensor,
    down_weight: torch.Tensor,
    *,
    n_columns: int = ANCHOR_COLUMNS,
) -> tuple[torch.Tensor, ...]:
    """Return the reference at float64 from inputs at any dtype, `n_columns` of inner at a time.

    The columns of inner are independent but for grad_x, which is the sum of their shares; all of
    them at once, with the inputs and outputs beside them, would fill the device.
    """
    wide_grad, wide_x = grad_output.double(), x.double()
    grad_x = torch.zeros_like(wide_x)
    grad_gate_weight, grad_up_weight, grad_down_weight = (
        torch.empty_like(weight, dtype=torch.float64)
        for weight in (gate_weight, up_weight, down_weight)
    )
    for start in range(0, gate.shape[-1], n_columns):
        part = slice(start, start + n_columns)
        share, *of_weights = reference(
            wide_grad,
            wide_x,
            gate[..., part].double(),
            up[..., part].double(),
            act[..., part].double(),
            gate_weight[part].double(),
            up_weight[part].double(),
            down_weight[:, part].double(),
        )
        grad_x += share
        grad_gate_weight[part], grad_up_weight[part], grad_down_weight[:, part] = of_weights
    return grad_x, grad_gate_weight, grad_up_weight, grad_down_weight


def bytes_moved() -> int:
    """Return the bytes of the full workload: every input and every gradient once."""
    tokens, width, inner = _extent()
    return 2 * (3 * tokens * width + 3 * tokens * inner + 6 * inner * width)


def flops() -> int:
    """Return the operations of the full workload's six matrix products."""
    tokens, width, inner = _extent()
    return 6 * 2 * tokens * width * inner


def _extent() -> tuple[int, int, int]:
    sizes = WORKLOADS["full"]
    return sizes.batch * sizes.seq_len, sizes.hidden_size, sizes.intermediate_size
