"""Packed gated-delta-rule prefill against a system of equations per sequence and head."""

import torch

from tests.problems.loading import load, relative_error
from tests.problems.recurrences import BOUND, gdn_head, gdn_inputs, solved


def test_each_packed_sequence_solves_its_own_system() -> None:
    given = gdn_inputs(71)
    output, new_state = load(71).reference(*given.values())
    cu = given["cu_seqlens"].tolist()
    for s in range(len(cu) - 1):
        for h in range(4):
            span = slice(cu[s], cu[s + 1])
            expected = solved(given["state"][s, h].t(), *gdn_head(given, span, h))
            assert relative_error(output[span, h], expected[0]) < BOUND
            assert relative_error(new_state[s, h].t(), expected[1]) < BOUND


def test_a_sequence_of_no_tokens_keeps_its_state() -> None:
    given = gdn_inputs(71)
    given["cu_seqlens"] = torch.tensor([0, 5, 5, 60, 65])
    _, new_state = load(71).reference(*given.values())
    assert torch.equal(new_state[1], given["state"][1])


def test_prefill_in_one_token_sequences_is_decode() -> None:
    decode = gdn_inputs(72)
    packed = {
        name: value.squeeze(1) if name in ("q", "k", "v", "a", "b") else value
        for name, value in decode.items()
    }
    packed["cu_seqlens"] = torch.arange(5)
    packed["scale"] = packed.pop("scale")
    output, new_state = load(71).reference(*packed.values())
    expected = load(72).reference(*decode.values())
    torch.testing.assert_close(output, expected[0].squeeze(1))
    torch.testing.assert_close(new_state, expected[1])


def test_the_published_sequences_add_up() -> None:
    sizes = load(71).WORKLOADS["full"]
    assert sum(sizes.lengths) == 959
    assert sum(load(71).WORKLOADS["heldout_1"].lengths) == 2_300


def test_prefill_gates_use_the_first_constants_of_the_full_workload() -> None:
    module, given = load(71), gdn_inputs(71)
    assert given["A_log"].tolist() == list(module.A_LOG[:4])
    assert given["dt_bias"].tolist() == list(module.DT_BIAS[:4])
    assert len(module.A_LOG) == len(module.DT_BIAS) == 16
