"""Backward of RMSNorm after a residual sum: one gradient for both summands, one for the weight."""

from dataclasses import dataclass
from typing import Any

import torch

from problems.mlp_norm.norms import rms_norm_gradient

SOURCE = (
    "Own work, written from public model code: the fused residual sum and RMSNorm of Qwen3-4B,"
    " differentiated. The workload class is named by SOL-ExecBench."
)

EPS = 1e-6
ANCHOR_ROWS = 65_536


@dataclass(frozen=True)
class Sizes:
    """One workload: batch, sequence, model width."""

    batch: int
    seq_len: int
    hidden_size: int = 2_560


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(64, 8_192),
    "smoke": Sizes(2, 64, hidden_size=256),
    "heldout_1": Sizes(1, 3),
    "heldout_2": Sizes(7, 1_111),
    "heldout_3": Sizes(4, 2_048, hidden_size=4_096),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw grad_output, normalized, rstd and weight; the seed is the caller's.

    normalized and rstd come from the same rows, whose sizes range from 0.5 to 2; grad_output leans
    towards the norm's output, so that the projection along normalized cannot be left out.
    """
    sizes = WORKLOADS[workload]
    rows = (sizes.batch, sizes.seq_len)
    shape = (*rows, sizes.hidden_size)
    grad_output = torch.randn(shape, dtype=torch.float32, device=device)
    normalized = torch.randn(shape, dtype=torch.float32, device=device)
    normalized *= torch.rand(*rows, 1, dtype=torch.float32, device=device) * 1.5 + 0.5
    rstd = torch.rsqrt(normalized.square().mean(dim=-1, keepdim=True) + EPS)
    normalized *= rstd
    weight = torch.randn(sizes.hidden_size, dtype=torch.float32, device=device) * 0.1 + 1.0
    grad_output += 0.5 * normalized * weight
    return [grad_output.to(torch.bfloat16), normalized, rstd, weight]


@torch.no_grad()
def reference(
    grad_output: torch.Tensor, normalized: torch.Tensor, rstd: torch.Tensor, weight: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the gradients of weight * normalized, where normalized = rstd * (hidden + residual).

    Args:
        grad_output: [batch, seq, width], bfloat16; float64 when the anchor is computed.
        normalized: [batch, seq, width], float32 (float64 in the anchor), as are those that follow.
        rstd: [batch, seq, 1].
        weight: [width].

    Returns:
        grad_hidden: [batch, seq, width] in the dtype of grad_output.
        grad_residual: equal to grad_hidden, in storage of its own.
        grad_weight: [width], float32 (float64 in the anchor), not rounded further.
    """
    wide = torch.promote_types(grad_output.dtype, torch.float32)
    grad, rows = grad_output.to(wide), normalized.to(wide)
    grad_weight = (grad * rows).flatten(0, -2).sum(dim=0)
    grad_sum = rms_norm_gradient(grad * weight.to(wide), rows, rstd.to(wide))
    grad_hidden = grad_sum.to(grad_output.dtype)
    return grad_hidden, grad_hidden.clone(), grad_weight


@torch.no_grad()
def anchor(
    grad_output: torch.Tensor,
    normalized: torch.Tensor,
    rstd: torch.Tensor,
    weight: torch.Tensor,
    *,
    n_rows: int = ANCHOR_ROWS,
) -> tuple[torch.Tensor, ...]:
    """Return the reference at float64 from inputs at any dtype, `n_rows` at a time.

    Rows are independent but for grad_weight, which is the sum of their shares; all of them at
    once, with the inputs and outputs beside them, would fill the device.
    """
    grads, rows, scales = (tensor.flatten(0, -2) for tensor in (grad_output, normalized, rstd))
    grad_hidden, grad_residual = (torch.empty_like(rows, dtype=torch.float64) for _ in range(2))
    grad_weight = torch.zeros_like(weight, dtype=torch.float64)
    for start in range(0, rows.shape[0], n_rows):
        part = slice(start, start + n_rows)
        saved = rows[part].double(), scales[part].double(), weight.double()
        grad_hidden[part], grad_residual[part], share = reference(grads[part].double(), *saved)
        grad_weight += share
    shape = grad_output.shape
    return grad_hidden.view(shape), grad_residual.view(shape), grad_weight


def bytes_moved() -> int:
    """Return the bytes of the full workload: inputs once, both copies and grad_weight written."""
    sizes = WORKLOADS["full"]
    n_rows, width = sizes.batch * sizes.seq_len, sizes.hidden_size
    return n_rows * ((2 + 4 + 2 * 2) * width + 4) + 2 * 4 * width


def flops() -> int:
    """Return the operations of the full workload: ten per element, all of them elementwise."""
    sizes = WORKLOADS["full"]
    return 10 * sizes.batch * sizes.seq_len * sizes.hidden_size
