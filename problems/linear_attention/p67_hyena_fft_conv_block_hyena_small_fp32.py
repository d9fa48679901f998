"""Hyena block: gates around a long convolution whose filter a sine network makes, then an MLP."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional

SOURCE = (
    "Own work, re-authored from public model code: the order-2 block of Hyena and HyenaDNA."
    " The workload class is named by SOL-ExecBench."
)

SHORT_TAPS = 3
DECAY_TARGET = 0.01
FAST_DECAY = 0.3
SLOW_DECAY = 1.5
LOWEST_BAND = 1e-4


@dataclass(frozen=True)
class Sizes:
    """One workload: batch, tokens, model width, MLP width, filter width, positional features."""

    batch: int
    n_tokens: int
    width: int = 256
    inner: int = 1_024
    filter_width: int = 64
    n_features: int = 5

    @property
    def affine_shapes(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of the weights with a bias, in the order of the inputs."""
        width, order = self.width, self.filter_width
        return (
            (3 * width, width),
            (3 * width, 1, SHORT_TAPS),
            (order, self.n_features),
            (order, order),
            (order, order),
            (width, width),
            (self.inner, width),
            (width, self.inner),
        )


WORKLOADS: dict[str, Sizes] = {
    "full": Sizes(32, 256),
    "smoke": Sizes(2, 48, width=32, inner=64, filter_width=16),
    "heldout_1": Sizes(3, 1_000),
    "heldout_2": Sizes(1, 17),
    "heldout_3": Sizes(8, 200, width=128, inner=512, filter_width=32),
}


def make_inputs(workload: str = "full", device: str = "cuda") -> list[Any]:
    """Draw hidden_states and 24 weights in the order of `reference`; then eps and shift.

    The seed is the caller's. Weights are drawn at 1 / sqrt(fan-in), biases at 0.1, norms and the
    sine frequency around 1; exp_mod_deltas is the same in every draw.
    """
    sizes = WORKLOADS[workload]

    def normal(*shape: int, factor: float = 1.0) -> torch.Tensor:
        return factor * torch.randn(*shape, dtype=torch.float32, device=device)

    def norm() -> list[torch.Tensor]:
        return [1 + normal(sizes.width, factor=0.1), normal(sizes.width, factor=0.1)]

    def affine(shape: tuple[int, ...]) -> list[torch.Tensor]:
        weight = normal(*shape, factor=math.prod(shape[1:]) ** -0.5)
        return [weight, normal(shape[0], factor=0.1)]

    width, order = sizes.width, sizes.filter_width
    in_proj, short, filter_0, filter_1, filter_2, out_proj, fc1, fc2 = sizes.affine_shapes
    slowest, fastest = (math.log(DECAY_TARGET) / decay for decay in (SLOW_DECAY, FAST_DECAY))
    deltas = torch.linspace(slowest, fastest, width, dtype=torch.float32, device=device)
    return [
        *(normal(sizes.batch, sizes.n_tokens, width), *norm(), *norm()),
        *(*affine(in_proj), *affine(short), *affine(filter_0)),
        *(1 + normal(1, order, factor=0.1), *affine(filter_1), *affine(filter_2)),
        *(normal(width, order, factor=order**-0.5), normal(width, factor=0.1)),
        *(deltas[None, None], *affine(out_proj), *affine(fc1), *affine(fc2), 1e-5, 0.05),
    ]


@torch.no_grad()
def reference(  # noqa: PLR0913, PLR0917
    hidden_states: torch.Tensor,
    norm1_weight: torch.Tensor,
    norm1_bias: torch.Tensor,
    norm2_weight: torch.Tensor,
    norm2_bias: torch.Tensor,
    in_proj_weight: torch.Tensor,
    in_proj_bias: torch.Tensor,
    short_weight: torch.Tensor,
    short_bias: torch.Tensor,
    filter_w0: torch.Tensor,
    filter_b0: torch.Tensor,
    sin_freq: torch.Tensor,
    filter_w1: torch.Tensor,
    filter_b1: torch.Tensor,
    filter_w2: torch.Tensor,
    filter_b2: torch.Tensor,
    filter_out_weight: torch.Tensor,
    filter_bias: torch.Tensor,
    exp_mod_deltas: torch.Tensor,
    out_proj_weight: torch.Tensor,
    out_proj_bias: torch.Tensor,
    fc1_weight: torch.Tensor,
    fc1_bias: torch.Tensor,
    fc2_weight: torch.Tensor,
    fc2_bias: torch.Tensor,
    layer_norm_eps: float,
    exp_mod_shift: float,
) -> torch.Tensor:
    """Return r + MLP(LayerNorm(r)), where r = hidden_states + Hyena(LayerNorm(hidden_states)).

    Hyena projects to three signals and convolves each with its short past: x0, x1 and v. The
    product v x1 is convolved with a filter as long as the sequence, causally; filter_bias times
    the product is added; the sum is gated by x0 and projected. Along the sequence the filter is a
    network of three sine layers, sin(sin_freq * (W h + b)), on positional features, times
    e^(-t |exp_mod_deltas|) + exp_mod_shift. The MLP's activation is the GELU in its tanh form.

    Args:
        hidden_states: [batch, tokens, D], float32; float64 when the anchor is computed. All
            tensors have one dtype, weights of projections are [out, in].
        norm1_weight: [D], as norm1_bias, norm2_weight and norm2_bias.
        in_proj_weight: [3 D, D], to x0, x1, v in this order; in_proj_bias: [3 D].
        short_weight: [3 D, 1, 3], whose last tap meets the current token; short_bias: [3 D].
        filter_w0: [F, E]; E features are t, cosines and negative sines of (E - 1) / 2 bands.
        sin_freq: [1, F], of all three layers.
        filter_w1: [F, F], as filter_w2; filter_b0, filter_b1, filter_b2: [F].
        filter_out_weight: [D, F], without a bias.
        filter_bias: [D].
        exp_mod_deltas: [1, 1, D].
        out_proj_weight: [D, D]; out_proj_bias: [D].
        fc1_weight: [inner, D]; fc1_bias: [inner].
        fc2_weight: [D, inner]; fc2_bias: [D].
        layer_norm_eps: of both norms.
        exp_mod_shift: floor of the filter's modulation.

    Returns:
        The shape and dtype of hidden_states.
    """
    wide = torch.promote_types(hidden_states.dtype, torch.float32)
    x = hidden_states.to(wide)
    n_tokens, width = x.shape[1:]

    def affine(values: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return functional.linear(values, weight.to(wide), bias.to(wide))

    def norm(values: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        scale, shift = weight.to(wide), bias.to(wide)
        return functional.layer_norm(values, (width,), scale, shift, layer_norm_eps)

    hidden = _features(n_tokens, filter_w0.shape[1], x)
    layers = (filter_w0, filter_b0), (filter_w1, filter_b1), (filter_w2, filter_b2)
    for weight, bias in layers:
        hidden = torch.sin(sin_freq.to(wide) * affine(hidden, weight, bias))
    rates = exp_mod_deltas.to(wide).abs().reshape(-1)
    fading = torch.exp(-_times(n_tokens, x).unsqueeze(-1) * rates) + exp_mod_shift
    long_filter = (hidden @ filter_out_weight.to(wide).t() * fading).t()

    signals = affine(norm(x, norm1_weight, norm1_bias), in_proj_weight, in_proj_bias)
    padded = functional.pad(signals.transpose(1, 2), (short_weight.shape[-1] - 1, 0))
    taps, offset = short_weight.to(wide), short_bias.to(wide)
    x0, x1, v = functional.conv1d(padded, taps, offset, groups=3 * width).chunk(3, dim=1)
    product = v * x1
    mixed = _convolve(product, long_filter) + filter_bias.to(wide).unsqueeze(-1) * product
    r = x + affine((mixed * x0).transpose(1, 2), out_proj_weight, out_proj_bias)

    inner = affine(norm(r, norm2_weight, norm2_bias), fc1_weight, fc1_bias)
    output = r + affine(functional.gelu(inner, approximate="tanh"), fc2_weight, fc2_bias)
    return output.to(hidden_states.dtype)


def _times(n_tokens: int, like: torch.Tensor) -> torch.Tensor:
    """Return positions from 0 to 1."""
    return torch.linspace(0, 1, n_tokens, dtype=like.dtype, device=like.device)


def _features(n_tokens: int, n_features: int, like: torch.Tensor) -> torch.Tensor:
    """Return [tokens, features]: t, then cosines and negative sines of each band's angle."""
    n_bands = (n_features - 1) // 2
    numbers = torch.arange(n_tokens, dtype=like.dtype, device=like.device)
    bands = torch.linspace(LOWEST_BAND, n_bands - 1, n_bands, dtype=like.dtype, device=like.device)
    angles = (2 * math.pi / n_tokens * numbers).unsqueeze(-1) * bands
    times = _times(n_tokens, like).unsqueeze(-1)
    return torch.cat([times, torch.cos(angles), -torch.sin(angles)], dim=-1)


def _convolve(signal: torch.Tensor, kernel: torch.Tensor) -> torch.Tensor:
    """Convolve [batch, D, tokens] causally with [D, tokens], through transforms of twice that."""
    n_tokens = signal.shape[-1]
    spectrum = torch.fft.rfft(signal, n=2 * n_tokens) * torch.fft.rfft(kernel, n=2 * n_tokens)
    whole: torch.Tensor = torch.fft.irfft(spectrum, n=2 * n_tokens)
    return whole[..., :n_tokens]


def bytes_moved() -> int:
    """Return the bytes of the full workload: hidden states in and out, the weights once."""
    sizes = WORKLOADS["full"]
    affine = sum(math.prod(shape) + shape[0] for shape in sizes.affine_shapes)
    vectors = 6 * sizes.width + sizes.filter_width * (sizes.width + 1)
    return 4 * (2 * sizes.batch * sizes.n_tokens * sizes.width + affine + vectors)


def flops() -> int:
    """Return the operations of the full workload: projections, filter network and transforms.

    A real transform of 2 L values counts 2.5 * 2 L * log2(2 L); a product of spectra 6 L.
    """
    sizes = WORKLOADS["full"]
    shapes, n_tokens = sizes.affine_shapes, sizes.n_tokens
    projections = 2 * sum(math.prod(shape) for shape in (shapes[0], *shapes[5:]))
    network = 2 * sum(math.prod(shape) for shape in shapes[2:5])
    network += 2 * sizes.width * sizes.filter_width
    transform = 5 * n_tokens * math.ceil(math.log2(2 * n_tokens))
    channels = sizes.batch * sizes.width
    long = channels * (2 * transform + 6 * n_tokens) + sizes.width * transform
    return n_tokens * (sizes.batch * projections + network) + long
