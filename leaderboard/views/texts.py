"""Kernels and skills as lines of safe HTML; what a reader could not see is written out."""

import re
import unicodedata
from functools import lru_cache

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

_PLAIN = re.compile(r"[\n\t\x20-\x7e]*")
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
# Blank or invisible though Unicode does not class them so: fillers, joiners, variation selectors.
_BLANK = frozenset({0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0}).union(
    range(0x180B, 0x1810), range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0)
)


def visible(text: str) -> str:
    """Return the text with every character that cannot be seen written as ⟦U+200B⟧.

    Line feeds and tabs stay; a carriage return before a line feed is dropped.
    """
    text = text.replace("\r\n", "\n")
    if _PLAIN.fullmatch(text):
        return text
    return "".join(_mark(char) if _is_hidden(char) else char for char in text)


def has_hidden(text: str) -> bool:
    """Say whether `visible` would write anything out."""
    text = text.replace("\r\n", "\n")
    return not _PLAIN.fullmatch(text) and any(_is_hidden(char) for char in text)


def plain_lines(text: str) -> list[SafeString]:
    """Return the text's lines, escaped: inert whatever it says."""
    return [escape(line) for line in _lines(visible(text))]


@lru_cache(maxsize=64)
def python_lines(text: str) -> list[SafeString]:
    """Return the lines of Python code with Pygments' classes, and no inline style."""
    code = visible(text)
    lexer = PythonLexer(stripnl=False, ensurenl=True)
    html = highlight(code, lexer, HtmlFormatter(nowrap=True))
    # Pygments escapes what it passes through, and closes its spans at every line's end.
    return [mark_safe(line) for line in _lines(html)]  # noqa: S308


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n")


def _is_hidden(char: str) -> bool:
    if char in "\n\t" or " " <= char <= "~":
        return False
    return unicodedata.category(char) in _HIDDEN_CATEGORIES or ord(char) in _BLANK


def _mark(char: str) -> str:
    return f"⟦U+{ord(char):04X}⟧"
