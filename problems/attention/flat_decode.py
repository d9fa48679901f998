"""Grouped-query decode over pages of one token: all tokens of all requests as one flat list.

No length crosses to the host, at the price of tensors of tokens times query heads times dim.
"""

import math

import torch


def attend(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    kv_indptr: torch.Tensor,
    kv_indices: torch.Tensor,
    sm_scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (output, lse): softmax attention of each request's one query over its own tokens.

    Args:
        q: [requests, query heads, dim]; query head h reads kv head h // G.
        k_cache: [tokens in the pool, 1, kv heads, dim], the dtype of q.
        v_cache: as k_cache.
        kv_indptr: [requests + 1]: request b owns slots kv_indptr[b] up to kv_indptr[b + 1].
        kv_indices: [slots]: the page of each slot, in token order.
        sm_scale: factor of the logits, applied after the dot product.

    Returns:
        output: as q; zero for a request of no tokens.
        lse: [requests, query heads], base-2 logarithm of the softmax denominator in float32, or
            in float64 where q has it; -inf for a request of no tokens.
    """
    wide = torch.promote_types(q.dtype, torch.float32)
    n_requests, n_heads, dim = q.shape
    n_kv_heads = k_cache.shape[2]
    slots = torch.arange(kv_indices.shape[0], dtype=kv_indptr.dtype, device=q.device)
    owner = torch.searchsorted(kv_indptr[1:], slots, right=True)
    pages = kv_indices.long()

    keys = k_cache[pages, 0].to(wide).unsqueeze(-1)
    values = v_cache[pages, 0].to(wide).unsqueeze(-2)
    queries = q.to(wide).view(n_requests, n_kv_heads, -1, dim)[owner]
    logits = (queries @ keys).view(-1, n_heads) * sm_scale

    peak = logits.new_full((n_requests, n_heads), -torch.inf)
    peak.scatter_reduce_(0, owner.unsqueeze(-1).expand_as(logits), logits, reduce="amax")
    weights = torch.exp(logits - peak[owner])
    total = torch.zeros_like(peak).index_add_(0, owner, weights)
    weighted = (weights.view(*queries.shape[:-1], 1) * values).view(-1, n_heads, dim)
    sums = logits.new_zeros(n_requests, n_heads, dim).index_add_(0, owner, weighted)

    output = sums / total.masked_fill(total == 0, 1).unsqueeze(-1)
    lse = (peak + torch.log(total)) / math.log(2)
    return output.to(q.dtype), lse
