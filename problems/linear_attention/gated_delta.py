"""The gated delta rule of Qwen3-Next: gates per value head, and batches of requests."""

from dataclasses import dataclass

import torch

from problems.linear_attention import delta_rule


@dataclass(frozen=True)
class Gates:
    """What steers each value head, as a problem is given it; heads are the last axis.

    The state decays by exp(-exp(A_log) * softplus(a + dt_bias)); what it holds under a key moves
    towards the value by the share sigmoid(b).
    """

    A_log: torch.Tensor
    a: torch.Tensor
    dt_bias: torch.Tensor
    b: torch.Tensor

    def decay(self, dtype: torch.dtype) -> torch.Tensor:
        """Return the factors between 0 and 1, in the shape of a."""
        gate = self.a.to(dtype) + self.dt_bias.to(dtype)
        # logaddexp, because softplus turns into the identity above 20 even in float64.
        softplus = torch.logaddexp(gate, torch.zeros_like(gate))
        return torch.exp(-torch.exp(self.A_log.to(dtype)) * softplus)

    def share(self, dtype: torch.dtype) -> torch.Tensor:
        """Return the shares between 0 and 1, in the shape of b."""
        return torch.sigmoid(self.b.to(dtype))


def advance(
    state: torch.Tensor,
    *,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    gates: Gates,
    scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (output, new_state) after all tokens of each request; state is left as it is.

    Args:
        state: [requests, value heads, V, K] in the dtype of the computation.
        q: [requests, tokens, query heads, K]. Value head h uses query and key head
            h // (value heads / query heads); keys are used as given, not normalised.
        k: as q.
        v: [requests, tokens, value heads, V].
        gates: a and b are [requests, tokens, value heads].
        scale: factor of the output.

    Returns:
        output: the shape of v and the dtype of q, rounded once.
        new_state: the shape and dtype of state.
    """
    wide = state.dtype
    group = v.shape[2] // q.shape[2]
    query, key = (x.to(wide).repeat_interleave(group, dim=2).transpose(1, 2) for x in (q, k))
    output, new_state = delta_rule.scan(
        state,
        query,
        key=key,
        value=v.to(wide).transpose(1, 2),
        share=gates.share(wide).transpose(1, 2),
        decay=gates.decay(wide).transpose(1, 2).unsqueeze(-1),
    )
    return (scale * output).transpose(1, 2).contiguous().to(q.dtype), new_state
