"""Embed the next token, normalise embedding and hidden state apart, project both (Ling MTP)."""

import math
from dataclasses import dataclass
from typing import Any

import torch

from problems.mlp_norm.draws import linear_weight
from problems.mlp_norm.norms import rms_norm

SOURCE = (
    "Own work, written from public model code: the entry of the multi-token-prediction layer of"
    " Ling (Bailing MoE v2). The workload class is named by SOL-ExecBench."
)

RMS_NORM_EPS = 1e-6


@dataclass(frozen=True)
class Sizes:
    """One workload: batch, sequence, vocabulary, model width."""

    batch: int
    seq_len: int
    vocab_size: int = 157_184
    hidden_size: int = 4_096


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(32, 256),
    "smoke": Sizes(2, 32, vocab_size=512, hidden_size=128),
    "heldout_1": Sizes(1, 2),
    "heldout_2": Sizes(7, 777),
    "heldout_3": Sizes(4, 128, vocab_size=32_000, hidden_size=2_048),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw the six tensors of the reference, in its order, and eps; the seed is the caller's."""
    sizes = WORKLOADS[workload]
    tokens, width = (sizes.batch, sizes.seq_len), sizes.hidden_size

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, dtype=torch.bfloat16, device=device)

    input_ids = torch.randint(sizes.vocab_size, tokens, dtype=torch.int64, device=device)
    hidden_states, word_embeddings = normal(*tokens, width), normal(sizes.vocab_size, width)
    enorm_weight, hnorm_weight = normal(width) * 0.1 + 1.0, normal(width) * 0.1 + 1.0
    projection = linear_weight(width, 2 * width, dtype=torch.bfloat16, device=device)
    inputs = [input_ids, hidden_states, word_embeddings, enorm_weight, hnorm_weight]
    return [*inputs, projection, RMS_NORM_EPS]


@torch.no_grad()
def reference(  # noqa: PLR0913, PLR0917
    input_ids: torch.Tensor,
    hidden_states: torch.Tensor,
    word_embeddings: torch.Tensor,
    enorm_weight: torch.Tensor,
    hnorm_weight: torch.Tensor,
    eh_proj_weight: torch.Tensor,
    eps: float,
) -> torch.Tensor:
    """Return [norm(embedding of the next id), norm(hidden)] @ eh_proj_weight^T.

    The last position has no next id and takes the embedding of id 0. Each norm is rounded to the
    dtype of hidden_states before its weight is multiplied in that dtype.

    Args:
        input_ids: [batch, seq], int64.
        hidden_states: [batch, seq, width], bfloat16; float64 when the anchor is computed.
        word_embeddings: [vocabulary, width], the dtype of hidden_states, as all that follow.
        enorm_weight: [width], for the embedding.
        hnorm_weight: [width], for the hidden state.
        eh_proj_weight: [width, 2 * width]; its first half of columns meets the embedding.
        eps: added to the mean square of a row.

    Returns:
        [batch, seq, width] in the dtype of hidden_states.
    """
    next_ids = torch.roll(input_ids, -1, dims=-1)
    next_ids[..., -1] = 0
    embedded = _normalise(word_embeddings[next_ids], enorm_weight, eps)
    hidden = _normalise(hidden_states, hnorm_weight, eps)
    return torch.cat((embedded, hidden), dim=-1) @ eh_proj_weight.t()


def _normalise(rows: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    wide = torch.promote_types(rows.dtype, torch.float32)
    return rms_norm(rows.to(wide), eps).to(rows.dtype) * weight


def bytes_moved() -> int:
    """Return the bytes of the full workload: of the embeddings only the rows that are expected.

    Row 0 is always read; n uniform ids name V * (1 - (1 - 1/V)^n) different rows on average.
    """
    sizes = WORKLOADS["full"]
    n_tokens, width = sizes.batch * sizes.seq_len, sizes.hidden_size
    n_drawn = n_tokens - sizes.batch
    different = -sizes.vocab_size * math.expm1(n_drawn * math.log1p(-1 / sizes.vocab_size))
    n_rows = 1 + round(different) + 2 * n_tokens
    return 2 * (n_rows * width + 2 * width * width + 2 * width) + 8 * n_tokens


def flops() -> int:
    """Return the floating-point operations of the projection in the full workload."""
    sizes = WORKLOADS["full"]
    return 2 * sizes.batch * sizes.seq_len * 2 * sizes.hidden_size**2
