"""The Hyena block against its sums, written out, in float64."""

import math
from typing import Any

import pytest
import torch

from tests.problems.loading import draw, load, relative_error, upcast
from tests.problems.recurrences import BOUND

# fmt: off
NAMES = (
    "x", "n1w", "n1b", "n2w", "n2b", "in_w", "in_b", "sh_w", "sh_b",
    "f0w", "f0b", "freq", "f1w", "f1b", "f2w", "f2b", "fow", "fb", "deltas",
    "out_w", "out_b", "fc1w", "fc1b", "fc2w", "fc2b", "eps", "shift",
)
# fmt: on


def given(workload: str = "smoke") -> dict[str, Any]:
    return dict(zip(NAMES, upcast(draw(67, workload)), strict=True))


def normed(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float) -> torch.Tensor:
    centred = x - x.mean(-1, keepdim=True)
    return centred / (centred.square().mean(-1, keepdim=True) + eps).sqrt() * weight + bias


def long_filter(p: dict[str, Any], n_tokens: int) -> torch.Tensor:
    """Return [tokens, channels], position by position."""
    rows = []
    for n in range(n_tokens):
        t = n / (n_tokens - 1)
        angles = [band * 2 * math.pi * n / n_tokens for band in (1e-4, 1.0)]
        h = torch.tensor(
            [t, *map(math.cos, angles), *(-math.sin(angle) for angle in angles)],
            dtype=torch.float64,
        )
        for layer in "012":
            h = torch.sin(p["freq"][0] * (p[f"f{layer}w"] @ h + p[f"f{layer}b"]))
        rows.append((p["fow"] @ h) * (torch.exp(-t * p["deltas"][0, 0].abs()) + p["shift"]))
    return torch.stack(rows)


def block(p: dict[str, Any], kernel: torch.Tensor) -> torch.Tensor:
    """Return the block's output with the long filter given, convolving by shifted sums."""
    x, n_tokens = p["x"], p["x"].shape[1]
    u = normed(x, p["n1w"], p["n1b"], p["eps"]) @ p["in_w"].t() + p["in_b"]
    c = p["sh_b"].expand_as(u).clone()
    for back in range(3):
        c[:, back:] += p["sh_w"][:, 0, 2 - back] * u[:, : n_tokens - back]
    width = x.shape[2]
    x0, x1, v = c[..., :width], c[..., width : 2 * width], c[..., 2 * width :]
    s = v * x1
    y = p["fb"] * s
    for back in range(n_tokens):
        y[:, back:] += kernel[back] * s[:, : n_tokens - back]
    r = x + (y * x0) @ p["out_w"].t() + p["out_b"]
    h = normed(r, p["n2w"], p["n2b"], p["eps"]) @ p["fc1w"].t() + p["fc1b"]
    gelu = 0.5 * h * (1 + torch.tanh(math.sqrt(2 / math.pi) * (h + 0.044715 * h**3)))
    return r + gelu @ p["fc2w"].t() + p["fc2b"]


def test_the_block_is_its_sums() -> None:
    p = given()
    output = load(67).reference(*p.values())
    assert relative_error(output, block(p, long_filter(p, 48))) < BOUND


def test_no_token_hears_a_later_one() -> None:
    p = given()
    output = load(67).reference(*p.values())
    p["x"][:, 30:] = 5.0
    torch.testing.assert_close(load(67).reference(*p.values())[:, :30], output[:, :30])


def test_the_long_filter_matters_much() -> None:
    p = given()
    output = load(67).reference(*p.values())
    assert relative_error(block(p, torch.zeros(48, 32, dtype=torch.float64)), output) > 0.3


def test_modulation_runs_from_the_slow_to_the_fast_decay() -> None:
    deltas = given("heldout_3")["deltas"][0, 0]
    assert deltas.shape == (128,)
    # ln(0.01) / 1.5 and ln(0.01) / 0.3
    assert float(deltas[0]) == pytest.approx(-3.0701, abs=1e-4)
    assert float(deltas[-1]) == pytest.approx(-15.3506, abs=1e-4)
