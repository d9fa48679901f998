"""NVFP4 attention output projection that quantises its activation on the fly (Nemotron)."""

from dataclasses import dataclass
from typing import Any

import torch

from problems.quantization.draws import nvfp4_weight
from problems.quantization.nvfp4 import BLOCK, from_parts, product, quantise, to_parts
from problems.tolerance import Frobenius, Tolerance

SOURCE = (
    "Own work, re-authored from public model code: Nemotron's attention, TransformerEngine's"
    " NVFP4 recipe. The workload class is named by SOL-ExecBench."
)

TOLERANCE = Tolerance((Frobenius(1e-3),))


@dataclass(frozen=True)
class Sizes:
    """One workload: rows, outputs and inner size.

    Of the 2,816 outputs the model uses 2,688; the padding is computed like the rest.
    """

    m: int
    n: int = 2_816
    k: int = 4_096


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(m=64 * 512),
    "smoke": Sizes(m=64, n=192, k=256),
    "heldout_1": Sizes(m=1),
    "heldout_2": Sizes(m=2_331),
    "heldout_3": Sizes(m=1_000, n=1_536, k=2_048),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw hidden_states, and the weight as codes, scales and global scale; the caller seeds."""
    sizes = WORKLOADS[workload]
    hidden_states = torch.randn(sizes.m, sizes.k, dtype=torch.bfloat16, device=device)
    return [hidden_states, *to_parts(nvfp4_weight(sizes.n, sizes.k, device=device))]


@torch.no_grad()
def reference(
    hidden_states: torch.Tensor,
    weight: torch.Tensor,
    weight_scale: torch.Tensor,
    weight_global_scale: float,
) -> torch.Tensor:
    """Return hidden_states, quantised to NVFP4, @ decoded weight^T, [M, N], not cast back.

    The global scale of hidden_states comes from the largest magnitude of the whole tensor.

    Args:
        hidden_states: [M, K], bfloat16; float64 when the anchor is computed. The product is
            formed and returned in float32, or float64 with it.
        weight: [N, K / 2], uint8, element 2j of a row in the low nibble of byte j.
        weight_scale: [N, K / 16], float8_e4m3fn.
        weight_global_scale: the factor that decodes the scales.
    """
    wide = torch.promote_types(hidden_states.dtype, torch.float32)
    decoded = from_parts(weight, weight_scale, weight_global_scale)
    return product(quantise(hidden_states), decoded, wide)


def bytes_moved() -> int:
    """Return the bytes of the full workload: rows, codes and scales read, float32 written."""
    sizes = WORKLOADS["full"]
    weight = sizes.n * (sizes.k // 2 + sizes.k // BLOCK)
    return 2 * sizes.m * sizes.k + weight + 4 * sizes.m * sizes.n


def flops() -> int:
    """Return the floating-point operations of the product in the full workload."""
    sizes = WORKLOADS["full"]
    return 2 * sizes.m * sizes.n * sizes.k
