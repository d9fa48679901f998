"""PyTorch forms the new state; the DSL reads the output from it, taken as [key, value]."""

import functools

import cutlass.cute as cute
import torch
from cutlass import BFloat16, Float32
from cutlass.cute.runtime import make_fake_compact_tensor
from cutlass.cute.typing import AddressSpace


def _fake(dtype, *shape):
    """Describe a contiguous CPU tensor to the compiler."""
    return make_fake_compact_tensor(
        dtype,
        shape,
        stride_order=tuple(reversed(range(len(shape)))),
        memspace=AddressSpace.generic,
    )


@cute.jit
def _read(state: cute.Tensor, q: cute.Tensor, scale: Float32, output: cute.Tensor):
    group = state.shape[1] // q.shape[2]
    for request in range(state.shape[0]):
        for head in range(state.shape[1]):
            for v in range(state.shape[2]):
                total = Float32(0.0)
                for k in range(state.shape[3]):
                    query = q[request, 0, head // group, k].to(Float32)
                    total = total + state[request, head, k, v] * query
                output[request, 0, head, v] = total * scale


@functools.cache
def _compiled(requests, heads, query_heads, dim):
    return cute.compile(
        _read,
        _fake(Float32, requests, heads, dim, dim),
        _fake(BFloat16, requests, 1, query_heads, dim),
        Float32(1.0),
        _fake(Float32, requests, 1, heads, dim),
        options="--enable-tvm-ffi",
    )


def solve(q, k, v, state, a_log, a, dt_bias, b, scale):
    requests, heads, dim, _ = state.shape
    key = k[:, 0].float().repeat_interleave(heads // k.shape[2], dim=1).unsqueeze(-1)
    gate = torch.nn.functional.softplus(a[:, 0].float() + dt_bias)
    decayed = torch.exp(-torch.exp(a_log) * gate)[..., None, None] * state
    share = torch.sigmoid(b[:, 0].float())[..., None, None]
    change = share * (v[:, 0].float().unsqueeze(-1) - decayed @ key)
    new_state = decayed + change * key.transpose(-1, -2)
    output = torch.empty(requests, 1, heads, dim)
    _compiled(requests, heads, q.shape[2], dim)(new_state, q, scale, output)
    return output.to(q.dtype), new_state
