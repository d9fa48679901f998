"""A skill as text: what counts as one, its digest, and how a model that gets it sees it."""

import hashlib
import re
import unicodedata

# Besides the categories below, characters that print as nothing.
_BLANKS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})
_VISIBLE_CONTROLS = frozenset("\t\n\r")
_TAG = re.compile(r"<(?=\s*/?\s*skill\b)", re.IGNORECASE)


def read(text: str | None) -> str | None:
    """Return the skill in a text, or None when there is none: nothing written, or only blanks."""
    return text if text is not None and text.strip() else None


def digest(text: str) -> str:
    """Return the SHA-256 of the text's UTF-8 bytes, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def attach(text: str) -> str:
    """Return the skill as a delimited block that names its digest.

    The digest is that of the text as it was written. Inside the block hidden characters show as
    marks, and nothing can pass for the block's own tags.
    """
    body = _TAG.sub("\N{SINGLE LEFT-POINTING ANGLE QUOTATION MARK}", visible(text)).strip("\n")
    return f'<skill sha256="{digest(text)}">\n{body}\n</skill>'


def visible(text: str) -> str:
    """Return the text with every character that prints as nothing written as ⟦U+200B⟧."""
    return "".join(f"⟦U+{ord(letter):04X}⟧" if _is_hidden(letter) else letter for letter in text)


def _is_hidden(letter: str) -> bool:
    if letter in _VISIBLE_CONTROLS:
        return False
    is_variation = "\ufe00" <= letter <= "\ufe0f" or "\U000e0100" <= letter <= "\U000e01ef"
    return is_variation or letter in _BLANKS or unicodedata.category(letter) in _HIDDEN_CATEGORIES
