"""Recurrences with a matrix state, as one system of equations over all tokens of a head."""

from typing import Any

import torch

from tests.problems.loading import draw, upcast

# Of one float64 formulation against another, in the Frobenius norm.
BOUND = 1e-12


def solved(
    state: torch.Tensor,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    beta: torch.Tensor,
    log_decay: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (outputs, last state) of one head's delta rule without stepping through time.

    Token i predicts from the first state and from the corrections u_j of the tokens before it,
    each faded by what decayed since. That is a triangular system in the u.

    Args: state [K, V]; q, k, log_decay [T, K]; v [T, V]; beta [T].
    """
    past = log_decay.cumsum(0)
    n_tokens = k.shape[0]
    later = torch.ones(n_tokens, n_tokens, dtype=torch.bool).triu(1)
    since = (past[:, None] - past[None]).masked_fill(later[..., None], -torch.inf).exp()
    overlap = torch.einsum("ic,jc,ijc->ij", k, k, since).tril(-1)
    system = torch.eye(n_tokens, dtype=k.dtype) + beta[:, None] * overlap
    u = torch.linalg.solve(system, beta[:, None] * (v - (k * past.exp()) @ state))
    outputs = (q * past.exp()) @ state + torch.einsum("ic,jc,ijc->ij", q, k, since) @ u
    last = past[-1].exp()[:, None] * state + (k * since[-1]).t() @ u
    return outputs, last


def unit(x: torch.Tensor) -> torch.Tensor:
    return x / x.norm(dim=-1, keepdim=True)


def gdn_inputs(number: int, workload: str = "smoke") -> dict[str, Any]:
    names = ["q", "k", "v", "state", "A_log", "a", "dt_bias", "b"]
    if number == 71:
        names.append("cu_seqlens")
    if number == 73:
        names.insert(4, "rows")
    return dict(zip([*names, "scale"], upcast(draw(number, workload)), strict=True))


def gdn_head(given: dict[str, Any], where: Any, h: int) -> tuple[torch.Tensor, ...]:
    """Return q, k, v, beta and log decay of value head h at the tokens `where`."""
    group = given["v"].shape[-2] // given["q"].shape[-2]
    q, k = (given[name][where][:, h // group] for name in "qk")
    gate = given["a"][where][:, h] + given["dt_bias"][h]
    log_decay = -given["A_log"][h].exp() * torch.log1p(gate.exp())
    beta = torch.sigmoid(given["b"][where][:, h])
    v = given["v"][where][:, h]
    return given["scale"] * q, k, v, beta, log_decay[:, None].expand_as(k)
