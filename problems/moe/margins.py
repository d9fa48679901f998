"""Margins of a router's choice, and redrawing the tokens that lack one."""

from collections.abc import Callable

import torch

REDRAW_LIMIT = 16


def redraw_undecided(
    rows: torch.Tensor,
    gap: Callable[[torch.Tensor], torch.Tensor],
    *,
    margin: float,
    draw: Callable[[torch.Tensor], torch.Tensor] = torch.randn_like,
) -> None:
    """Draw again, in place, each row whose gap is below `margin`, until there is none.

    Args:
        rows: [tokens, width].
        gap: maps some of the rows, [n, width], to the smallest differences that decide their
            choices, [n]; in float64, so that neither TF32 nor the order of a sum matters.
        draw: maps some of the rows to as many new ones.

    Raises:
        ValueError: some row is still undecided after REDRAW_LIMIT rounds.
    """
    waiting = torch.arange(rows.shape[0], device=rows.device)
    for _ in range(REDRAW_LIMIT):
        waiting = waiting[gap(rows[waiting]) < margin]
        if waiting.numel() == 0:
            return
        rows[waiting] = draw(rows[waiting])
    raise ValueError(
        f"{waiting.numel()} tokens still hang on less than {margin} after {REDRAW_LIMIT} redraws;"
        " the draw of the router must be broken"
    )


def cut_gap(scores: torch.Tensor, k: int) -> torch.Tensor:
    """Return how far the k-th largest score of each row stands above the next, [rows]."""
    best = scores.topk(k + 1, dim=-1).values
    return best[..., k - 1] - best[..., k]


def order_gap(scores: torch.Tensor, k: int) -> torch.Tensor:
    """Return the smallest step between neighbours among each row's k + 1 largest, [rows]."""
    best = scores.topk(k + 1, dim=-1).values
    return (best[..., :-1] - best[..., 1:]).amin(dim=-1)
