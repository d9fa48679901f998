"""What changed between two kernels of one DSL, line by line and word by word."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache

from leaderboard.views.texts import visible

CONTEXT = 3
LINE_LIMIT = 6_000
_WORDS = re.compile(r"\w+|\s+|.")
_WORD_DIFF_CHARS = 400


@dataclass(frozen=True)
class Span:
    """A stretch of a line; `changed` when it differs from the line it replaces."""

    text: str
    changed: bool


@dataclass(frozen=True)
class Line:
    """One line of the diff, with its number in either text; None where it does not occur."""

    kind: str
    old_number: int | None
    new_number: int | None
    spans: tuple[Span, ...]


@dataclass(frozen=True)
class Diff:
    """The hunks, each with CONTEXT equal lines around; `too_long` says that none were made."""

    hunks: tuple[tuple[Line, ...], ...]
    n_added: int
    n_removed: int
    too_long: bool = False

    @property
    def is_same(self) -> bool:
        """Whether the texts are equal."""
        return not self.too_long and not self.hunks


@lru_cache(maxsize=64)
def diff(old: str, new: str) -> Diff:
    """Compare two texts; above LINE_LIMIT lines together they are left uncompared."""
    before, after = visible(old).splitlines(), visible(new).splitlines()
    if len(before) + len(after) > LINE_LIMIT:
        return Diff((), 0, 0, too_long=True)
    matcher = SequenceMatcher(None, before, after)
    hunks = tuple(
        tuple(line for opcode in group for line in _lines(before, after, opcode))
        for group in matcher.get_grouped_opcodes(CONTEXT)
    )
    kinds = [line.kind for hunk in hunks for line in hunk]
    return Diff(hunks, kinds.count("added"), kinds.count("removed"))


def _lines(
    before: list[str], after: list[str], opcode: tuple[str, int, int, int, int]
) -> Iterator[Line]:
    tag, old_start, old_end, new_start, new_end = opcode
    if tag == "equal":
        for offset, text in enumerate(before[old_start:old_end]):
            numbers = old_start + offset + 1, new_start + offset + 1
            yield Line("same", *numbers, (Span(text, changed=False),))
        return
    old, new = before[old_start:old_end], after[new_start:new_end]
    pairs = [_words(*pair) for pair in zip(old, new, strict=True)] if len(old) == len(new) else []
    for offset, text in enumerate(old):
        spans = pairs[offset][0] if pairs else (Span(text, changed=False),)
        yield Line("removed", old_start + offset + 1, None, spans)
    for offset, text in enumerate(new):
        spans = pairs[offset][1] if pairs else (Span(text, changed=False),)
        yield Line("added", None, new_start + offset + 1, spans)


def _words(old: str, new: str) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    """Mark the words that differ, unless the lines have too little in common to say."""
    if max(len(old), len(new)) > _WORD_DIFF_CHARS:
        return (Span(old, changed=False),), (Span(new, changed=False),)
    before, after = _WORDS.findall(old), _WORDS.findall(new)
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    if matcher.ratio() < 0.4:
        return (Span(old, changed=False),), (Span(new, changed=False),)
    left, right = [], []
    for tag, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        changed = tag != "equal"
        left.append(Span("".join(before[old_start:old_end]), changed))
        right.append(Span("".join(after[new_start:new_end]), changed))
    return tuple(s for s in left if s.text), tuple(s for s in right if s.text)
