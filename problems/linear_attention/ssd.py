"""The state-space core of Mamba-2: decaying sums of outer products, in chunks of time."""

import torch

from problems.linear_attention import chunks


def diagonal(
    x: torch.Tensor, log_decay: torch.Tensor, B: torch.Tensor, C: torch.Tensor
) -> torch.Tensor:
    """Return what each token reads of its own chunk: sum over j <= i of C_i . B_j, decayed, x_j.

    Args:
        x: [batch, heads, ..., T, P], in the dtype of the computation, as all of them.
        log_decay: [batch, heads, ..., T]; entry i fades the tokens before i.
        B: [batch, groups, ..., T, N]. Head h uses group h // (heads / groups).
        C: as B.

    Returns:
        The shape of x.
    """
    scores = _to_heads(C @ B.transpose(-1, -2), x)
    return (scores * chunks.decay_matrix(log_decay)) @ x


def scan(
    x: torch.Tensor,
    log_decay: torch.Tensor,
    B: torch.Tensor,
    C: torch.Tensor,
    *,
    chunk: int,
    state: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (outputs, last state) of S_t = e^a_t S_(t-1) + x_t B_t^T and y_t = S_t C_t.

    Args:
        x: [batch, heads, tokens, P], in the dtype of the computation, as all of them.
        log_decay: [batch, heads, tokens]: a.
        B: [batch, groups, tokens, N]. Head h uses group h // (heads / groups).
        C: as B.
        chunk: tokens that are handled together; no output depends on it but by rounding.
        state: [batch, heads, P, N] before the first token.

    Returns:
        outputs: the shape of x.
        last state: the shape of state.
    """
    n_tokens = x.shape[2]
    x, B, C = (chunks.split(part, chunk=chunk, dim=-2) for part in (x, B, C))
    log_decay = chunks.split(log_decay, chunk=chunk, dim=-1)
    past = log_decay.cumsum(dim=-1).unsqueeze(-1)
    until_end = torch.exp(past[..., -1:, :] - past)
    written = (x * until_end).transpose(-1, -2) @ _to_heads(B, x)

    before = []
    for n in range(x.shape[2]):
        before.append(state)
        state = past[:, :, n, -1:].exp() * state + written[:, :, n]
    carried = _to_heads(C, x) @ torch.stack(before, dim=2).transpose(-1, -2)
    outputs = diagonal(x, log_decay, B, C) + past.exp() * carried
    return outputs.flatten(2, 3)[:, :, :n_tokens], state


def _to_heads(groups: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    return groups.repeat_interleave(x.shape[1] // groups.shape[1], dim=1)


def diagonal_flops(
    n_tokens: int, *, chunk: int, heads: int, groups: int, head_dim: int, state_dim: int
) -> int:
    """Return the operations within chunks: scores per group, outputs per head, half of both."""
    return n_tokens * chunk * (groups * state_dim + heads * head_dim)


def carried_flops(n_tokens: int, *, heads: int, head_dim: int, state_dim: int) -> int:
    """Return the operations of writing the states of chunks and of reading them."""
    return 4 * n_tokens * heads * head_dim * state_dim
