"""What every problem module promises to the grader."""

import math
from typing import Any

import pytest
import torch

from problems import catalog
from problems.tolerance import Default, Exact, Frobenius, PerHead, Tolerance
from tests.problems.loading import draw, load, relative_error, tensors, upcast

NUMBERS = [problem.number for problem in catalog.all_problems()]
EVERY_WORKLOAD = [
    (problem.number, workload)
    for problem in catalog.all_problems()
    for workload in catalog.workloads(problem)
    if workload != "full"
]
# Hundreds of megabytes or more than 1e10 multiplications: the GPU's work.
TOO_LARGE_FOR_A_CPU = {(number, "heldout_2") for number in (25, 49, 60, 72)}
each_problem = pytest.mark.parametrize("number", NUMBERS)


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def copies(inputs: list[Any]) -> list[Any]:
    return [item.clone() if isinstance(item, torch.Tensor) else item for item in inputs]


def same(left: Any, right: Any) -> bool:
    if not isinstance(left, torch.Tensor):
        return bool(left == right)
    if left.dtype is torch.float8_e4m3fn:
        left, right = left.view(torch.uint8), right.view(torch.uint8)
    return left.dtype == right.dtype and torch.equal(left, right)


@each_problem
def test_it_has_the_published_workload_a_small_one_and_several_held_out(number: int) -> None:
    names = catalog.workloads(catalog.find(str(number)))
    assert names[:2] == ("full", "smoke")
    assert sum(name.startswith("heldout_") for name in names) >= 2
    assert tuple(load(number).WORKLOADS) == names


@each_problem
def test_one_seed_gives_one_draw_and_another_seed_another(number: int) -> None:
    first, again, other = draw(number), draw(number), draw(number, seed=8)
    assert all(map(same, first, again))
    assert not all(map(same, first, other))
    for left, right in zip(first, other, strict=True):
        if isinstance(left, torch.Tensor):
            assert (left.shape, left.dtype) == (right.shape, right.dtype)
            assert left.is_contiguous()
        else:
            assert left == right


@each_problem
def test_the_reference_changes_the_inputs_it_names_and_no_other(number: int) -> None:
    inputs = draw(number)
    before = copies(inputs)
    load(number).reference(*inputs)
    changed = {i for i, pair in enumerate(zip(before, inputs, strict=True)) if not same(*pair)}
    assert changed == set(getattr(load(number), "MUTATES", ()))


@each_problem
def test_the_reference_is_a_function_of_its_inputs(number: int) -> None:
    inputs = draw(number)
    first = tensors(load(number).reference(*copies(inputs)))
    again = tensors(load(number).reference(*copies(inputs)))
    assert all(map(same, first, again))


@each_problem
def test_outputs_share_storage_only_with_inputs_changed_in_place(number: int) -> None:
    inputs = draw(number)
    mutated = {inputs[i].data_ptr() for i in getattr(load(number), "MUTATES", ())}
    others = {x.data_ptr() for x in inputs if isinstance(x, torch.Tensor)} - mutated
    outputs = {output.data_ptr() for output in tensors(load(number).reference(*inputs))}
    assert not outputs & others
    assert not mutated or outputs == mutated


@each_problem
def test_float64_inputs_give_a_float64_anchor_that_the_reference_agrees_with(number: int) -> None:
    inputs = draw(number)
    expected = tensors(load(number).reference(*copies(inputs)))
    anchor = tensors(load(number).reference(*upcast(copies(inputs))))
    for left, right in zip(expected, anchor, strict=True):
        assert left.shape == right.shape
        if not left.is_floating_point():
            assert same(left, right)
            continue
        assert right.dtype is torch.float64
        # One bfloat16 rounding is 2^-9 of a value at most, 1.7e-3 of the norm; float32 far less.
        assert relative_error(left, right) < (2e-3 if left.dtype is torch.bfloat16 else 1e-6)


@each_problem
def test_outputs_are_finite_and_not_all_zero(number: int) -> None:
    for output in tensors(load(number).reference(*draw(number))):
        assert torch.isfinite(output.double()).all()
        assert output.double().abs().max() > 0


@each_problem
def test_each_output_has_a_rule(number: int) -> None:
    outputs = tensors(load(number).reference(*draw(number)))
    stated = getattr(load(number), "TOLERANCE", Tolerance((Default(),) * len(outputs)))
    assert len(stated.rules) == len(outputs)


def test_the_rules_that_differ_from_the_protocol_are_the_specified_ones() -> None:
    stated = {
        number: load(number).TOLERANCE.rules
        for number in NUMBERS
        if hasattr(load(number), "TOLERANCE")
    }
    assert stated == {
        25: (Exact(), Exact()),
        49: (Exact(), Default()),
        60: (Frobenius(1e-3),),
    }


# The columns of the specification's table, in the digits it gives.
@pytest.mark.parametrize(
    ("number", "n_bytes", "n_flops"),
    [
        (2, "1.004e+07", "4.90e+07"),
        (25, "6.711e+07", "0"),
        (36, "2.663e+08", "3.3e+08"),
        (49, "1.379e+08", "3.436e+10"),
        (60, "7.38e+07", "6.040e+10"),
        (72, "1.350e+08", "1.17e+08"),
    ],
)
def test_the_work_is_the_tables(number: int, n_bytes: str, n_flops: str) -> None:
    def rounded(value: int, printed: str) -> str:
        digits = len(printed.partition("e")[0].partition(".")[2])
        return f"{value:.{digits}e}" if value else "0"

    assert rounded(load(number).bytes_moved(), n_bytes) == n_bytes
    assert rounded(load(number).flops(), n_flops) == n_flops


@pytest.mark.parametrize(
    ("number", "workload"), [pair for pair in EVERY_WORKLOAD if pair not in TOO_LARGE_FOR_A_CPU]
)
def test_held_out_workloads_run_too(number: int, workload: str) -> None:
    outputs = tensors(load(number).reference(*draw(number, workload)))
    assert all(math.prod(output.shape) > 0 for output in outputs)
    assert all(torch.isfinite(output.double()).all() for output in outputs)


def test_a_rule_that_is_not_stated_is_asked_for_in_vain() -> None:
    tolerance = Tolerance((Exact(), PerHead(axis=2)))
    assert tolerance.rule(1) == PerHead(axis=2)
    with pytest.raises(IndexError, match=r"output 2 has no rule: 2 are stated"):
        tolerance.rule(2)
    with pytest.raises(IndexError):
        tolerance.rule(-1)
