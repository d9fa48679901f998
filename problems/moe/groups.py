"""Group-limited choice of experts: only those of the best groups are admissible."""

import torch

GROUPS = 8
CHOSEN_GROUPS = 4


def limit_to_best_groups(
    biased: torch.Tensor, *, closed: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the scores with those of the four worse groups at `closed`, and the groups' scores.

    A group is a run of experts / 8 neighbours; its score is the sum of its two best.

    Args:
        biased: [tokens, experts], floating.
        closed: the score of an expert that must not be chosen.

    Returns:
        admissible: [tokens, experts].
        group_scores: [tokens, 8].
    """
    grouped = torch.unflatten(biased, -1, (GROUPS, -1))
    group_scores = grouped.topk(2, dim=-1).values.sum(dim=-1)
    chosen = group_scores.topk(CHOSEN_GROUPS, dim=-1).indices
    shut = torch.ones_like(group_scores, dtype=torch.bool).scatter_(-1, chosen, value=False)
    return grouped.masked_fill(shut.unsqueeze(-1), closed).flatten(-2), group_scores
