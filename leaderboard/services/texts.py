"""Make what models and endpoints wrote fit for the database, which refuses some characters."""

import re
from typing import Any

# PostgreSQL stores no NUL, and UTF-8 has no lone surrogates; models can write both.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_MAX_INTEGER = 2**31 - 1


def storable(text: str) -> str:
    """Return the text with every character that cannot be stored replaced by U+FFFD."""
    return _UNSTORABLE.sub("\ufffd", text)


def storable_json(value: Any) -> Any:
    """Return a JSON value with all its texts, names included, made storable."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, dict):
        return {storable(name): storable_json(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [storable_json(item) for item in value]
    return value


def storable_count(value: int | None) -> int | None:
    """Return a count as an endpoint reported it; None when no column can hold it."""
    return value if value is not None and 0 <= value <= _MAX_INTEGER else None
