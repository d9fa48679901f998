"""Each reference against a second formulation: textbook loops in float64."""

import math
from itertools import pairwise

import pytest
import torch

from problems.sequences import offsets, pattern
from tests.problems.loading import draw, load, relative_error, upcast


def test_paged_decode_is_softmax_attention_over_each_requests_pages() -> None:
    q, k_cache, v_cache, indptr, indices, scale = upcast(draw(2))
    output, lse = load(2).reference(q, k_cache, v_cache, indptr, indices, scale)
    for request in range(q.shape[0]):
        pages = indices[indptr[request] : indptr[request + 1]].long()
        for head in range(q.shape[1]):
            logits = scale * (k_cache[pages, 0, 0] @ q[request, head])
            weights = torch.softmax(logits, dim=0)
            torch.testing.assert_close(output[request, head], weights @ v_cache[pages, 0, 0])
            in_bits = torch.logsumexp(logits, dim=0) / math.log(2)
            torch.testing.assert_close(lse[request, head], in_bits)


def test_query_heads_are_grouped_in_runs_when_there_are_several_kv_heads() -> None:
    torch.manual_seed(0)
    q = torch.randn(1, 6, 4, dtype=torch.float64)
    k_cache, v_cache = torch.randn(2, 5, 1, 2, 4, dtype=torch.float64)
    tables = torch.tensor([0, 3], dtype=torch.int32), torch.tensor([4, 0, 2], dtype=torch.int32)
    output, _ = load(2).reference(q, k_cache, v_cache, *tables, 0.5)
    for head in range(6):
        keys, values = k_cache[[4, 0, 2], 0, head // 3], v_cache[[4, 0, 2], 0, head // 3]
        weights = torch.softmax(0.5 * keys @ q[0, head], dim=0)
        torch.testing.assert_close(output[0, head], weights @ values)


def test_a_request_of_no_tokens_gets_zero_and_minus_infinity() -> None:
    q, k_cache, v_cache, _, indices, scale = draw(2)
    indptr = torch.tensor([0, 2, 2, 3, 3, 3, 3], dtype=torch.int32)
    output, lse = load(2).reference(q, k_cache, v_cache, indptr, indices[:3], scale)
    assert (output[[1, 3, 4, 5]] == 0).all()
    assert (lse[[1, 3, 4, 5]] == -math.inf).all()
    assert torch.isfinite(lse[[0, 2]]).all()


def test_pages_of_a_draw_are_distinct_and_in_range() -> None:
    _, k_cache, _, indptr, indices, _ = draw(2, "heldout_2")
    assert len(set(indices.tolist())) == len(indices) == indptr[-1]
    assert 0 <= indices.min() <= indices.max() < k_cache.shape[0]


def test_page_copies_move_the_mapped_pages_and_leave_the_rest() -> None:
    src_k, src_v, dst_k, dst_v, mapping = draw(25)
    before = dst_k.clone(), dst_v.clone()
    wanted = {destination: source for source, destination in mapping.tolist()}
    returned = load(25).reference(src_k, src_v, dst_k, dst_v, mapping)
    assert returned[0] is dst_k
    assert returned[1] is dst_v
    for pool, source, old in zip(returned, (src_k, src_v), before, strict=True):
        for page in range(pool.shape[0]):
            origin = source[wanted[page]] if page in wanted else old[page]
            assert torch.equal(pool[page], origin)


def test_a_mapping_names_every_page_at_most_once() -> None:
    mapping = draw(25)[4]
    assert mapping.shape == (5, 2)
    assert mapping.is_contiguous()
    assert len(set(mapping.flatten().tolist())) == 10


def test_rms_norm_divides_each_row_by_its_root_mean_square() -> None:
    rows, weight = upcast(draw(36))
    output = load(36).reference(rows, weight)
    for row in (0, 500, 1_023):
        root = math.sqrt(sum(x * x for x in rows[row].tolist()) / 128 + 1e-6)
        torch.testing.assert_close(output[row], rows[row] / root * weight)


def test_rms_norm_of_a_zero_row_is_zero() -> None:
    rows, weight = draw(36, "heldout_3")
    output = load(36).reference(rows, weight)
    assert (output[2_049] == 0).all()
    assert int((output == 0).all(dim=1).sum()) == 1


def test_tiny_rows_feel_the_epsilon() -> None:
    # mean square 1e-6 and EPS 1e-6: rows shrink by 1/sqrt(2) against unit rows.
    torch.manual_seed(0)
    rows = 1e-3 * torch.randn(64, 128, dtype=torch.float64)
    output = load(36).reference(rows, torch.ones(128, dtype=torch.float64))
    assert float(output.square().mean().sqrt()) == pytest.approx(1 / math.sqrt(2), rel=0.02)


def test_routing_takes_the_best_eight_of_the_best_four_groups() -> None:
    x, w, bias, factor = upcast(draw(49))
    indices, weights = load(49).reference(x, w, bias, factor)
    for token in range(0, x.shape[0], 17):
        score = [1 / (1 + math.exp(-float(row @ x[token]))) for row in w]
        biased = [s + float(b) for s, b in zip(score, bias, strict=True)]
        group = [sum(sorted(biased[8 * g : 8 * g + 8])[-2:]) for g in range(8)]
        best = sorted(range(8), key=lambda g: -group[g])[:4]
        admissible = [e for e in range(64) if e // 8 in best]
        chosen = sorted(admissible, key=lambda e: -biased[e])[:8]
        assert indices[token].tolist() == chosen
        total = sum(score[e] for e in chosen)
        expected = torch.tensor([2.5 * score[e] / total for e in chosen], dtype=torch.float64)
        torch.testing.assert_close(weights[token], expected)


def test_every_choice_of_the_router_has_a_margin() -> None:
    module = load(49)
    x, w, bias, _ = upcast(draw(49, seed=11))
    _, admissible, group_scores = module._score(x, w, bias)
    groups = group_scores.sort(descending=True).values
    experts = admissible.sort(descending=True).values
    assert (groups[:, 3] - groups[:, 4]).min() >= module.DECISION_MARGIN
    assert (experts[:, :8] - experts[:, 1:9]).min() >= module.DECISION_MARGIN


def test_a_router_that_cannot_decide_is_refused() -> None:
    tied = torch.zeros(64, 256, dtype=torch.bfloat16)
    with pytest.raises(ValueError, match=r"3 tokens still hang on less than 0.0001"):
        load(49)._redraw_undecided(
            torch.ones(3, 256, dtype=torch.bfloat16), tied, torch.zeros(64, dtype=torch.bfloat16)
        )


@pytest.mark.parametrize(("batch", "group"), [(1, 1), (3, 2)])
def test_a_gated_delta_step_decays_corrects_and_reads(batch: int, group: int) -> None:
    torch.manual_seed(3)
    heads, dim = 2 * group, 5
    q, k = torch.randn(2, batch, 1, 2, dim, dtype=torch.float64)
    v = torch.randn(batch, 1, heads, dim, dtype=torch.float64)
    state = torch.randn(batch, heads, dim, dim, dtype=torch.float64)
    a_log, dt_bias = torch.randn(2, heads, dtype=torch.float64)
    a, b = torch.randn(2, batch, 1, heads, dtype=torch.float64)
    output, new_state = load(72).reference(q, k, v, state, a_log, a, dt_bias, b, 0.3)
    for r in range(batch):
        for h in range(heads):
            softplus = math.log1p(math.exp(float(a[r, 0, h] + dt_bias[h])))
            decay = math.exp(-math.exp(float(a_log[h])) * softplus)
            share = 1 / (1 + math.exp(-float(b[r, 0, h])))
            key, query = k[r, 0, h // group], q[r, 0, h // group]
            kept = decay * state[r, h].t()  # [key, value], as the recurrence is written
            old = kept.t() @ key
            new = share * v[r, 0, h] + (1 - share) * old
            step = kept - torch.outer(key, old) + torch.outer(key, new)
            torch.testing.assert_close(new_state[r, h], step.t())
            torch.testing.assert_close(output[r, 0, h], 0.3 * step.t() @ query)


def test_gates_use_the_first_constants_of_the_full_workload() -> None:
    module = load(72)
    inputs = draw(72)
    assert inputs[4].tolist() == list(module.A_LOG[:4])
    assert inputs[6].tolist() == list(module.DT_BIAS[:4])
    assert len(module.A_LOG) == len(module.DT_BIAS) == module.WORKLOADS["full"].n_value_heads


def test_an_unchanged_state_would_be_far_off() -> None:
    inputs = draw(72)
    _, new_state = load(72).reference(*inputs)
    assert relative_error(inputs[3], new_state) > 0.3


def test_patterned_lengths_follow_the_specifications_notation() -> None:
    # 1 + (61 i mod 97): 0, 61, 122 - 97 = 25, 183 - 97 = 86
    assert pattern(4, step=61, start=0, modulus=97) == (1, 62, 26, 87)
    assert offsets((5, 1, 17)) == (0, 5, 6, 23)
    assert offsets(()) == (0,)


def test_the_published_offsets_have_the_stated_lengths() -> None:
    indptr = load(2).KV_INDPTR
    lengths = [right - left for left, right in pairwise(indptr)]
    assert (len(lengths), sum(lengths), min(lengths), max(lengths)) == (63, 19_134, 4, 5_668)
    assert sorted(lengths)[-2:] == [5_141, 5_668]
