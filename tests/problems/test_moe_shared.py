"""What the mixtures of experts share: margins, group limits, shares and draws."""

import pytest
import torch
from torch._subclasses import FakeTensorMode

from problems.moe.draws import popular_experts, weights
from problems.moe.experts import shares, weighted_sum
from problems.moe.groups import limit_to_best_groups
from problems.moe.margins import cut_gap, order_gap, redraw_undecided
from tests.problems.loading import draw, load


def test_gaps_are_measured_at_the_cut_or_at_every_step() -> None:
    scores = torch.tensor([[1.0, 9.0, 4.0, 8.5, 3.0]])
    # Sorted: 9, 8.5, 4, 3, 1
    assert cut_gap(scores, 2).tolist() == [4.5]
    assert cut_gap(scores, 3).tolist() == [1.0]
    assert order_gap(scores, 3).tolist() == [0.5]


def test_only_undecided_rows_are_drawn_again() -> None:
    rows = torch.tensor([[0.0], [5.0], [0.0]])
    redraw_undecided(rows, lambda some: some[:, 0], margin=1.0, draw=lambda some: some + 0.5)
    assert rows.tolist() == [[1.0], [5.0], [1.0]]


def test_rows_that_never_decide_are_refused() -> None:
    with pytest.raises(ValueError, match=r"2 tokens still hang on less than 0.5 after 16 redraws"):
        redraw_undecided(torch.ones(2, 3), lambda some: 0 * some[:, 0], margin=0.5)


def test_experts_outside_the_best_four_groups_are_closed() -> None:
    # Groups of two with sums 1, 3, ..., 15 for 0 + 1, 1 + 2 and so on: the last four win.
    biased = torch.tensor([[float(i // 2 + i % 2) for i in range(16)]])
    admissible, group_scores = limit_to_best_groups(biased, closed=-9.0)
    assert group_scores.tolist() == [[1.0, 3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0]]
    assert admissible[0, :8].tolist() == [-9.0] * 8
    assert torch.equal(admissible[0, 8:], biased[0, 8:])


def test_shares_list_each_experts_tokens_in_order_and_skip_the_absent() -> None:
    selected = torch.tensor([[2, 0], [-1, 2], [5, 2]])
    found = [(s.expert, s.tokens.tolist(), s.slots.tolist()) for s in shares(selected, 4)]
    assert found == [(0, [0], [1]), (2, [0, 1, 2], [0, 1, 1])]


def test_the_weighted_sum_leaves_unserved_tokens_at_zero() -> None:
    tokens = torch.tensor([[1.0], [2.0]])
    selected, factors = torch.tensor([[0, 1], [7, 8]]), torch.tensor([[10.0, 1.0], [1.0, 1.0]])
    total = weighted_sum(tokens, selected, factors, n_experts=2, expert=lambda e, x: x + e)
    # 10 * (1 + 0) + 1 * (1 + 1) = 12
    assert total.tolist() == [[12.0], [0.0]]


def test_popular_experts_are_distinct_and_unequally_loaded() -> None:
    torch.manual_seed(0)
    skewed = popular_experts(4_096, 64, 4, popularity_std=0.5, device="cpu")
    even = popular_experts(4_096, 64, 4, popularity_std=0.0, device="cpu")
    assert skewed.is_contiguous()
    assert all(len(set(row)) == 4 for row in skewed[:200].tolist())
    deviation = [
        float(torch.bincount(x.flatten(), minlength=64).double().std()) for x in (skewed, even)
    ]
    # Mean load 4096 * 4 / 64 = 256: noise gives about 16, a popularity of 0.5 about half the mean.
    assert deviation[0] > 80
    assert deviation[1] < 25


def test_weights_have_the_deviation_of_their_fan_in() -> None:
    torch.manual_seed(0)
    drawn = weights(64, 400, fan_in=400, dtype=torch.bfloat16, device="cpu")
    assert drawn.dtype is torch.bfloat16
    # 1 / sqrt(400) = 0.05
    assert float(drawn.double().std()) == pytest.approx(0.05, rel=0.03)


def test_every_grouped_choice_of_the_fp8_layer_has_a_margin() -> None:
    logits, bias, *_ = draw(44, seed=11)
    biased = torch.sigmoid(logits.double()) + bias.double()
    groups = torch.unflatten(biased, -1, (8, 4)).sort().values[..., -2:].sum(-1)
    ranked = groups.sort(descending=True)
    assert (ranked.values[:, 3] - ranked.values[:, 4]).min() >= 1e-4
    for token in range(logits.shape[0]):
        open_groups = torch.unflatten(biased[token], -1, (8, 4))[ranked.indices[token, :4]]
        scores = open_groups.flatten().sort(descending=True).values
        assert scores[7] - scores[8] >= 1e-4
    assert torch.equal(logits, logits.to(torch.bfloat16).float())


def test_the_high_biases_are_the_published_ones() -> None:
    per_group = [sum(e // 32 == g for e in load(44).HIGH_BIAS_EXPERTS) for g in range(8)]
    assert per_group == [12, 17, 16, 17, 9, 6, 11, 13]


@pytest.mark.parametrize(("number", "top_ks", "margin"), [(47, (4, 8), 1e-4), (48, (10,), 1e-5)])
def test_every_choice_by_probability_has_a_margin(
    number: int, top_ks: tuple[int, ...], margin: float
) -> None:
    for seed in range(4):
        x, router, bias, *_ = draw(number, seed=seed)
        probs = torch.softmax(x.flatten(0, 1).double() @ router.double().t(), dim=-1)
        biased = probs + bias.double() if number == 47 else probs
        ranked = biased.sort(descending=True).values
        for k in top_ks:
            assert (ranked[:, k - 1] - ranked[:, k]).min() >= margin


@pytest.mark.parametrize("number", [45, 46])
def test_dispatch_and_router_backward_never_wait_for_the_device(number: int) -> None:
    module = load(number)
    for workload, sizes in module.WORKLOADS.items():
        # Without values there is nothing that the host could wait for.
        with FakeTensorMode():
            result = module.reference(*module.make_inputs(workload, "cpu"))
        first = result if isinstance(result, torch.Tensor) else result[0]
        assert first.shape == (sizes.n_tokens, sizes.width)


@pytest.mark.parametrize("number", [44, 47, 48, 50, 51])
def test_inputs_of_every_size_have_the_shapes_of_their_workload(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = load(number)
    if hasattr(module, "redraw_undecided"):
        monkeypatch.setattr(module, "redraw_undecided", lambda *args, **kwargs: None)
    for workload, sizes in module.WORKLOADS.items():
        with FakeTensorMode():
            inputs = module.make_inputs(workload, "cpu")
        tokens = sizes.n_tokens if hasattr(sizes, "n_tokens") else sizes.batch * sizes.sequence
        x = inputs[2] if number == 44 else inputs[0]
        assert x.shape.numel() == tokens * sizes.width
        assert sum(sizes.n_experts in item.shape for item in inputs[:5]) >= 1
        if number == 44:
            assert sizes.width % 128 == sizes.inner % 128 == sizes.n_experts % 8 == 0
            assert 0 <= sizes.offset <= sizes.n_experts - sizes.n_local
            for codes, scales in (inputs[4:6], inputs[6:8]):
                assert [n // 128 for n in codes.shape[1:]] == list(scales.shape[1:])
