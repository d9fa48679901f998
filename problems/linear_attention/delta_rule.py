"""The delta rule: a matrix state that each token corrects under its key, token by token."""

import torch


def step(
    state: torch.Tensor,
    *,
    key: torch.Tensor,
    value: torch.Tensor,
    share: torch.Tensor,
    decay: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return the state after one token, in fresh storage: decayed, then corrected.

    Args:
        state: [..., V, K]: the key axis is the fastest.
        key: [..., K].
        value: [..., V].
        share: [...], how far what the state holds under the key moves towards the value.
        decay: [..., K] or [..., 1], factors of the state's key channels; None keeps all.
    """
    decayed = state if decay is None else state * decay.unsqueeze(-2)
    change = share.unsqueeze(-1) * (value - read(decayed, key))
    return decayed + change.unsqueeze(-1) * key.unsqueeze(-2)


def read(state: torch.Tensor, query: torch.Tensor) -> torch.Tensor:
    """Return what a state [..., V, K] holds under a query [..., K]: [..., V]."""
    return (state @ query.unsqueeze(-1)).squeeze(-1)


def scan(
    state: torch.Tensor,
    query: torch.Tensor,
    *,
    key: torch.Tensor,
    value: torch.Tensor,
    share: torch.Tensor,
    decay: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (outputs, last state) of all tokens in order; each output reads the updated state.

    Args:
        state: [..., V, K] before the first token.
        query: [..., tokens, K].
        key: as query.
        value: [..., tokens, V].
        share: [..., tokens].
        decay: [..., tokens, K] or [..., tokens, 1], or None.

    Returns:
        outputs: [..., tokens, V].
        last state: [..., V, K].
    """
    outputs = []
    for t in range(key.shape[-2]):
        state = step(
            state,
            key=key[..., t, :],
            value=value[..., t, :],
            share=share[..., t],
            decay=None if decay is None else decay[..., t, :],
        )
        outputs.append(read(state, query[..., t, :]))
    return torch.stack(outputs, dim=-2), state
