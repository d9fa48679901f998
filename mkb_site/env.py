"""Read settings from the environment: typed, loud, and with NAME_FILE for mounted secrets."""

import os
from pathlib import Path


class BadSettingError(Exception):
    """An environment variable that is missing or unreadable."""


def text(name: str, default: str | None = None) -> str:
    """Return a variable, the contents of the file named by NAME_FILE, or the default.

    Raises:
        BadSettingError: none of the three exists, or the file cannot be read.
    """
    if path := os.environ.get(f"{name}_FILE"):
        try:
            return Path(path).read_text().strip()
        except OSError as error:
            raise BadSettingError(f"{name}_FILE={path} cannot be read: {error.strerror}") from error
    value = os.environ.get(name, default)
    if value is None:
        raise BadSettingError(f"{name} is not set; set it, or {name}_FILE to a file that holds it")
    return value


def flag(name: str, default: bool) -> bool:
    """Return a variable that says yes or no.

    Raises:
        BadSettingError: any other word.
    """
    word = os.environ.get(name, "").strip().lower()
    if not word:
        return default
    if word not in ("0", "1", "false", "true", "no", "yes"):
        raise BadSettingError(f"{name}={word!r} is neither yes nor no; write 1 or 0")
    return word in ("1", "true", "yes")


def number(name: str, default: int) -> int:
    """Return a variable that is a whole number.

    Raises:
        BadSettingError: anything else.
    """
    word = os.environ.get(name, str(default))
    try:
        return int(word)
    except ValueError as error:
        raise BadSettingError(f"{name}={word!r} is no whole number; write digits only") from error


def listed(name: str, default: str = "") -> list[str]:
    """Return the comma-separated items of a variable, without blanks."""
    return [item.strip() for item in os.environ.get(name, default).split(",") if item.strip()]
