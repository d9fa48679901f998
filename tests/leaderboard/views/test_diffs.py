"""What changed between two kernels."""

from hypothesis import given
from hypothesis import strategies as st

from leaderboard.views.diffs import CONTEXT, LINE_LIMIT, Line, diff

kernels = st.lists(st.sampled_from(["a = 1", "b = 2", "", "    return x", "c <b>"]), max_size=12)


def text_of(line: Line) -> str:
    return "".join(span.text for span in line.spans)


def test_equal_kernels_have_no_hunk() -> None:
    assert diff("a\nb\n", "a\nb\n").is_same


def test_a_changed_word_is_marked_in_both_lines() -> None:
    (hunk,) = diff("lanes = 4\n", "lanes = 8\n").hunks
    removed, added = hunk
    assert [span.text for span in removed.spans if span.changed] == ["4"]
    assert [span.text for span in added.spans if span.changed] == ["8"]


def test_lines_with_little_in_common_are_not_marked_word_by_word() -> None:
    (hunk,) = diff("for i in range(n):\n", "import torch\n").hunks
    assert not any(span.changed for line in hunk for span in line.spans)


def test_numbers_count_in_each_text_for_itself() -> None:
    (hunk,) = diff("a\nb\nc\n", "a\nnew\nb\nc\n").hunks
    assert [(line.kind, line.old_number, line.new_number) for line in hunk] == [
        ("same", 1, 1),
        ("added", None, 2),
        ("same", 2, 3),
        ("same", 3, 4),
    ]


def test_only_the_neighbourhood_of_a_change_is_shown() -> None:
    old = [f"line {number}" for number in range(40)]
    new = [*old[:20], "changed", *old[21:]]
    (hunk,) = diff("\n".join(old), "\n".join(new)).hunks
    # The line removed, the line added, and CONTEXT on either side.
    assert len(hunk) == 2 + 2 * CONTEXT


def test_very_long_kernels_are_left_uncompared_and_say_so() -> None:
    found = diff("x\n" * LINE_LIMIT, "y\n")
    assert found.too_long
    assert not found.is_same


def test_hidden_characters_show_in_the_diff() -> None:
    (hunk,) = diff("a\n", "a\u200b\n").hunks
    assert text_of(hunk[1]) == "a⟦U+200B⟧"


@given(kernels, kernels)
def test_removed_and_same_lines_come_from_the_old_text_added_from_the_new(
    old: list[str], new: list[str]
) -> None:
    for line in [line for hunk in diff("\n".join(old), "\n".join(new)).hunks for line in hunk]:
        if line.old_number is not None:
            assert text_of(line) == old[line.old_number - 1]
        if line.new_number is not None:
            assert text_of(line) == new[line.new_number - 1]


@given(kernels, kernels)
def test_the_counts_are_those_of_the_lines(old: list[str], new: list[str]) -> None:
    found = diff("\n".join(old), "\n".join(new))
    assert found.n_added - found.n_removed == len("\n".join(new).splitlines()) - len(
        "\n".join(old).splitlines()
    )
