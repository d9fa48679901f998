"""Texts that models wrote, as lines of safe HTML."""

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.views import texts


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("a\u200bb", "a⟦U+200B⟧b"),
        ("\u202etxt", "⟦U+202E⟧txt"),
        ("tag \U000e0041", "tag ⟦U+E0041⟧"),
        ("vs\ufe0f", "vs⟦U+FE0F⟧"),
        ("filler\u3164", "filler⟦U+3164⟧"),
        ("nul\x00", "nul⟦U+0000⟧"),
        ("esc\x1b[31m", "esc⟦U+001B⟧[31m"),
        ("line\u2028end", "line⟦U+2028⟧end"),
        ("win\r\nmac\r", "win\nmac⟦U+000D⟧"),
        ("größe × µs 字", "größe × µs 字"),
    ],
)
def test_what_cannot_be_seen_is_written_out(text: str, seen: str) -> None:
    assert texts.visible(text) == seen
    assert texts.has_hidden(text) == (seen != text.replace("\r\n", "\n"))


def test_markup_is_escaped_line_by_line() -> None:
    assert texts.plain_lines("<b>\n&\n") == ["&lt;b&gt;", "&amp;"]


def test_code_gets_classes_and_no_style() -> None:
    lines = texts.python_lines("def solve(x):\n    return '<b>'\n")
    assert len(lines) == 2
    assert '<span class="k">def</span>' in lines[0]
    assert "&lt;b&gt;" in lines[1]
    assert "style" not in "".join(lines)


def test_a_string_over_several_lines_opens_and_closes_on_each() -> None:
    for line in texts.python_lines('"""one\ntwo\nthree"""\n'):
        assert line.count("<span") == line.count("</span>")


@given(st.text(max_size=200))
def test_highlighting_loses_and_adds_nothing(text: str) -> None:
    shown = "\n".join(texts.python_lines(text))
    assert html.unescape(re.sub(r"</?span[^>]*>", "", shown)) == texts.visible(text).removesuffix(
        "\n"
    )


@given(st.text(max_size=200))
def test_no_markup_survives(text: str) -> None:
    assert not re.search(r"<(?!/?span\b)", "\n".join(texts.python_lines(text)))
    assert "<" not in "\n".join(texts.plain_lines(text))
