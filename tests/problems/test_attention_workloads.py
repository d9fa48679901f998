"""Sizes of the attention workloads that only a GPU can run, by arithmetic and by fake tensors."""

import pytest
from torch._subclasses import FakeTensorMode

from problems import catalog
from tests.problems.loading import load, tensors


def workloads(*numbers: int) -> list[tuple[int, str]]:
    problems = [catalog.find(str(number)) for number in numbers]
    return [(p.number, name) for p in problems for name in catalog.workloads(p)]


@pytest.mark.parametrize(("number", "workload"), workloads(10, 12, 13))
def test_a_reference_takes_every_size_from_its_inputs(number: int, workload: str) -> None:
    with FakeTensorMode():
        inputs = load(number).make_inputs(workload, "cpu")
        outputs = tensors(load(number).reference(*inputs))
    first = inputs[1] if number == 10 else inputs[0]
    assert outputs[0].dtype == first.dtype
    if number == 12:
        assert outputs[0].flatten(2).shape == first.shape
    else:
        assert outputs[0].shape == first.shape
    if number == 10:
        assert [o.shape for o in outputs[1:]] == [i.shape for i in inputs[4:10]]


@pytest.mark.parametrize(("number", "workload"), workloads(14, 15))
def test_the_pool_holds_every_token(number: int, workload: str) -> None:
    sizes = load(number).WORKLOADS[workload]
    assert 0 < sizes.kv_indptr[-1] <= sizes.n_pages


@pytest.mark.parametrize(("number", "workload"), workloads(17))
def test_the_pool_holds_the_pages_of_every_selection(number: int, workload: str) -> None:
    sizes = load(number).WORKLOADS[workload]
    owned = [positions[-1] // sizes.page_size + 1 for positions in sizes.positions]
    assert sum(owned) <= sizes.n_pages
    assert max(map(len, sizes.positions)) <= sizes.index_width


@pytest.mark.parametrize(("number", "workload"), workloads(18))
def test_pool_and_table_hold_the_pages_of_every_request(number: int, workload: str) -> None:
    sizes = load(number).WORKLOADS[workload]
    owned = [-(-length // sizes.page_size) for length in sizes.seq_lens]
    # Page 0 stays unused.
    assert sum(owned) < sizes.n_pages
    assert max(owned) <= sizes.table_width


@pytest.mark.parametrize(("number", "workload"), workloads(11))
def test_images_have_tokens_and_heads_an_even_width(number: int, workload: str) -> None:
    sizes = load(number).WORKLOADS[workload]
    assert min(sizes.splits) >= 1
    assert sizes.width % (2 * sizes.n_heads) == 0
