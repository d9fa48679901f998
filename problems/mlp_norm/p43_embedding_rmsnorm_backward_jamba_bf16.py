"""RMSNorm backward, then scatter-add into a dense embedding gradient (Jamba)."""

from dataclasses import dataclass
from typing import Any

import torch

from problems.mlp_norm.norms import rms_norm_gradient

SOURCE = (
    "Own work, written from public model code: Jamba's embedding and the RMSNorm behind it,"
    " differentiated. The workload class is named by SOL-ExecBench."
)

VOCAB_SIZE = 65_536


@dataclass(frozen=True)
class Sizes:
    """One workload. Ids are below n_ids, uniform if `power` is 1, else crowded near 0.

    `only` names the ids to choose from instead.
    """

    batch: int
    seq_len: int
    hidden_size: int = 4_096
    n_ids: int = VOCAB_SIZE
    power: int = 1
    only: tuple[int, ...] = ()


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(64, 256),
    # Narrow, because the table of gradients keeps all its rows.
    "smoke": Sizes(2, 32, hidden_size=32, n_ids=256),
    "smoke_2": Sizes(2, 32, hidden_size=32, n_ids=256, only=(7,)),
    "smoke_3": Sizes(2, 32, hidden_size=32, n_ids=256, only=(0, 255)),
    "heldout_1": Sizes(1, 1),
    "heldout_2": Sizes(7, 999, power=4),
    "heldout_3": Sizes(16, 256, hidden_size=2_048, only=(0, 1, VOCAB_SIZE - 1)),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw grad_output, input_ids, hidden_states_fp32, rstd, norm_weight; the caller seeds.

    rstd is independent of the rows it belongs to.
    """
    sizes = WORKLOADS[workload]
    tokens, width = (sizes.batch, sizes.seq_len), sizes.hidden_size
    grad_output = torch.randn(*tokens, width, dtype=torch.bfloat16, device=device)
    input_ids = _draw_ids(sizes, device)
    hidden_states = torch.randn(*tokens, width, dtype=torch.float32, device=device)
    rstd = torch.rsqrt(0.5 + torch.rand(*tokens, 1, dtype=torch.float32, device=device))
    norm_weight = torch.randn(width, dtype=torch.bfloat16, device=device) * 0.1 + 1.0
    return [grad_output, input_ids, hidden_states, rstd, norm_weight]


def _draw_ids(sizes: Sizes, device: str) -> torch.Tensor:
    tokens = (sizes.batch, sizes.seq_len)
    if sizes.only:
        choices = torch.tensor(sizes.only, dtype=torch.int64, device=device)
        return choices[torch.randint(len(sizes.only), tokens, device=device)]
    if sizes.power == 1:
        return torch.randint(sizes.n_ids, tokens, dtype=torch.int64, device=device)
    drawn = torch.rand(tokens, dtype=torch.float32, device=device)
    return (sizes.n_ids * drawn**sizes.power).to(torch.int64)


@torch.no_grad()
def reference(
    grad_output: torch.Tensor,
    input_ids: torch.Tensor,
    hidden_states_fp32: torch.Tensor,
    rstd: torch.Tensor,
    norm_weight: torch.Tensor,
    *,
    vocab_size: int = VOCAB_SIZE,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (grad_embedding, grad_norm_weight) of norm_weight * rstd * embedding[input_ids].

    Tokens of the same id add up before the only rounding; rstd is used as given.

    Args:
        grad_output: [batch, seq, width], bfloat16; float64 when the anchor is computed.
        input_ids: [batch, seq], int64, below vocab_size; no id is a padding index.
        hidden_states_fp32: [batch, seq, width], float32 (float64 in the anchor): the embeddings.
        rstd: [batch, seq, 1], as hidden_states_fp32.
        norm_weight: [width], the dtype of grad_output.
        vocab_size: the rows of grad_embedding, which no input tells.

    Returns:
        grad_embedding: [vocab_size, width] in the dtype of grad_output; zero for absent ids.
        grad_norm_weight: [width], likewise.
    """
    wide = torch.promote_types(grad_output.dtype, torch.float32)
    grad, scale = grad_output.to(wide), rstd.to(wide)
    normalized = hidden_states_fp32.to(wide) * scale
    grad_norm_weight = (grad * normalized).flatten(0, -2).sum(dim=0)
    grad_rows = rms_norm_gradient(grad * norm_weight.to(wide), normalized, scale)
    table = grad_rows.new_zeros(vocab_size, grad_rows.shape[-1])
    table.index_add_(0, input_ids.flatten(), grad_rows.flatten(0, -2))
    return table.to(grad_output.dtype), grad_norm_weight.to(grad_output.dtype)


def bytes_moved() -> int:
    """Return the bytes of the full workload: inputs once, the dense table and the weight's."""
    sizes = WORKLOADS["full"]
    n_tokens, width = sizes.batch * sizes.seq_len, sizes.hidden_size
    return n_tokens * ((2 + 4) * width + 8 + 4) + 2 * (VOCAB_SIZE + 2) * width


def flops() -> int:
    """Return the operations of the full workload: ten per element, all of them elementwise."""
    sizes = WORKLOADS["full"]
    return 10 * sizes.batch * sizes.seq_len * sizes.hidden_size
