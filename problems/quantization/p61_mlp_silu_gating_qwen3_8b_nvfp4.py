"""SwiGLU MLP of three NVFP4 projections, its gated activation quantised again (Qwen3-8B)."""

from dataclasses import dataclass
from typing import Any

import torch

from problems.quantization.draws import nvfp4_weight
from problems.quantization.nvfp4 import BLOCK, Nvfp4, from_parts, product, quantise, to_parts
from problems.tolerance import Frobenius, Tolerance

SOURCE = (
    "Own work, re-authored from public model code: the feed-forward block of Qwen3,"
    " TransformerEngine's NVFP4 recipe. The workload class is named by SOL-ExecBench."
)

TOLERANCE = Tolerance((Frobenius(6e-2),))


@dataclass(frozen=True)
class Sizes:
    """One workload: sequences and their length, model width and intermediate width."""

    batch: int
    length: int
    hidden: int = 4_096
    intermediate: int = 12_288


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(32, 512),
    "smoke": Sizes(2, 32, hidden=128, intermediate=384),
    "heldout_1": Sizes(1, 1),
    "heldout_2": Sizes(3, 700),
    "heldout_3": Sizes(2, 256, hidden=2_048, intermediate=6_144),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw x, and each weight as codes, scales and global scale; the seed is the caller's."""
    sizes = WORKLOADS[workload]
    shape = (sizes.batch, sizes.length, sizes.hidden)
    inputs: list[Any] = [torch.randn(shape, dtype=torch.bfloat16, device=device)]
    up_shape = (1, sizes.intermediate, sizes.hidden)
    down_shape = (1, sizes.hidden, sizes.intermediate)
    for shape in (up_shape, up_shape, down_shape):
        inputs += to_parts(nvfp4_weight(*shape, device=device))
    return inputs


@torch.no_grad()
def reference(  # noqa: PLR0913, PLR0917
    x: torch.Tensor,
    gate: torch.Tensor,
    gate_scale: torch.Tensor,
    gate_global_scale: float,
    up: torch.Tensor,
    up_scale: torch.Tensor,
    up_global_scale: float,
    down: torch.Tensor,
    down_scale: torch.Tensor,
    down_global_scale: float,
) -> torch.Tensor:
    """Return (silu(x @ gate^T) * (x @ up^T)) @ down^T, in the shape and dtype of x.

    x and the gated activation are quantised to NVFP4, each with a global scale from its largest
    magnitude. Every step between the products rounds to the dtype of x.

    Args:
        x: [batch, length, width], bfloat16; float64 when the anchor is computed.
        gate: [1, intermediate, width / 2], uint8, element 2j of a row in the low nibble of byte j.
        gate_scale: [1, intermediate, width / 16], float8_e4m3fn.
        gate_global_scale: the factor that decodes the scales.
        up: as gate, with up_scale and up_global_scale.
        up_scale: as gate_scale.
        up_global_scale: as gate_global_scale.
        down: [1, width, intermediate / 2], uint8, packed alike.
        down_scale: [1, width, intermediate / 16], float8_e4m3fn.
        down_global_scale: as gate_global_scale.
    """
    wide = torch.promote_types(x.dtype, torch.float32)

    def project(rows: Nvfp4, weight: Nvfp4) -> torch.Tensor:
        return product(rows, weight, wide).to(x.dtype)

    rows = quantise(x.reshape(1, -1, x.shape[-1]))
    g = project(rows, from_parts(gate, gate_scale, gate_global_scale))
    u = project(rows, from_parts(up, up_scale, up_global_scale))
    gated = quantise(torch.nn.functional.silu(g) * u)
    return project(gated, from_parts(down, down_scale, down_global_scale)).reshape(x.shape)


def bytes_moved() -> int:
    """Return the bytes of the full workload: x, codes and scales read, the output written."""
    sizes = WORKLOADS["full"]
    n_rows = sizes.batch * sizes.length
    n_weights = 3 * sizes.hidden * sizes.intermediate
    return 2 * 2 * n_rows * sizes.hidden + n_weights // 2 + n_weights // BLOCK


def flops() -> int:
    """Return the floating-point operations of the three products in the full workload."""
    sizes = WORKLOADS["full"]
    return 3 * 2 * sizes.batch * sizes.length * sizes.hidden * sizes.intermediate
