"""NVFP4 by NVFP4 matrix product from operands that are already quantised (Nemotron, Mamba-2)."""

import math
from dataclasses import dataclass
from typing import Any

import torch

from problems.quantization.nvfp4 import BLOCK, Nvfp4, product, quantise
from problems.tolerance import Frobenius, Tolerance

SOURCE = (
    "Own work, written from public code: TransformerEngine's NVFP4 recipe, Nemotron's Mamba-2"
    " output projection. The workload class is named by SOL-ExecBench."
)

TOLERANCE = Tolerance((Frobenius(1e-3),))


@dataclass(frozen=True)
class Sizes:
    """One workload: batch, rows, outputs and inner size; `random_codes` draws every code alike."""

    m: int
    n: int = 1_920
    k: int = 1_920
    batch: int = 1
    random_codes: bool = False


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(m=8_192),
    "smoke": Sizes(m=64, n=240, k=240),
    "heldout_1": Sizes(m=1),
    "heldout_2": Sizes(m=3_001, random_codes=True),
    "heldout_3": Sizes(m=500, n=512, k=4_096, batch=3),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw both operands, each as codes, block scales and global scale; the caller seeds."""
    sizes = WORKLOADS[workload]
    shape = (sizes.batch, sizes.m, sizes.k)
    hidden_states = quantise(torch.randn(shape, dtype=torch.float32, device=device))
    shape = (sizes.batch, sizes.n, sizes.k)
    drawn = torch.randn(shape, dtype=torch.float32, device=device)
    weight = quantise(drawn / math.sqrt(sizes.k))
    inputs = []
    for operand in (hidden_states, weight):
        codes = operand.codes
        if sizes.random_codes:
            codes = torch.randint_like(codes, 0, 256)
        inputs += [codes, operand.scales, operand.decode_scale]
    return inputs


@torch.no_grad()
def reference(
    hidden_states: torch.Tensor,
    hidden_states_scale: torch.Tensor,
    global_decode_scale_input: torch.Tensor,
    weight: torch.Tensor,
    weight_scale: torch.Tensor,
    global_decode_scale_weight: torch.Tensor,
) -> torch.Tensor:
    """Return dequantised hidden_states @ dequantised weight^T, [batch, M, N], not cast back.

    Byte j of a row holds element 2j in its low nibble and 2j + 1 in its high nibble. Codes 0 to 7
    mean 0, 0.5, 1, 1.5, 2, 3, 4, 6; bit 3 is the sign. An element is its code's value times its
    block's scale (16 neighbours of K share one) times the global scale.

    Args:
        hidden_states: [batch, M, K / 2], uint8.
        hidden_states_scale: [batch, M, K / 16], float8_e4m3fn.
        global_decode_scale_input: [1], float32; float64 when the anchor is computed. The product
            is formed and returned in this dtype.
        weight: [batch, N, K / 2], uint8.
        weight_scale: [batch, N, K / 16], float8_e4m3fn.
        global_decode_scale_weight: [1], as global_decode_scale_input.
    """
    wide = torch.promote_types(global_decode_scale_input.dtype, torch.float32)
    left = Nvfp4(hidden_states, hidden_states_scale, global_decode_scale_input)
    right = Nvfp4(weight, weight_scale, global_decode_scale_weight)
    return product(left, right, wide)


def bytes_moved() -> int:
    """Return the bytes of the full workload: codes and scales of both operands, and the output."""
    sizes = WORKLOADS["full"]
    row = sizes.k // 2 + sizes.k // BLOCK
    operands = (sizes.m + sizes.n) * row
    return sizes.batch * (operands + 4 * sizes.m * sizes.n) + 2 * 4


def flops() -> int:
    """Return the floating-point operations of the product in the full workload."""
    sizes = WORKLOADS["full"]
    return 2 * sizes.batch * sizes.m * sizes.n * sizes.k
