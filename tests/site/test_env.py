"""Settings from the environment."""

from pathlib import Path

import pytest

from mkb_site import env
from mkb_site.settings.base import database


def test_a_variable_wins_over_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MKB_X", "set")
    assert env.text("MKB_X", "default") == "set"


def test_a_mounted_file_wins_and_loses_its_newline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret").write_text("from the file\n")
    monkeypatch.setenv("MKB_X", "set")
    monkeypatch.setenv("MKB_X_FILE", str(tmp_path / "secret"))
    assert env.text("MKB_X") == "from the file"


def test_a_missing_variable_says_how_to_set_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MKB_X", raising=False)
    with pytest.raises(env.BadSettingError, match="MKB_X is not set; set it, or MKB_X_FILE"):
        env.text("MKB_X")


def test_an_unreadable_file_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MKB_X_FILE", "/nowhere/secret")
    with pytest.raises(env.BadSettingError, match="MKB_X_FILE=/nowhere/secret cannot be read"):
        env.text("MKB_X")


@pytest.mark.parametrize(
    ("word", "meaning"), [("1", True), ("yes", True), ("NO", False), ("0", False)]
)
def test_flags_are_read(word: str, meaning: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MKB_X", word)
    assert env.flag("MKB_X", not meaning) is meaning


def test_a_blank_flag_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MKB_X", " ")
    assert env.flag("MKB_X", True) is True


def test_an_unclear_flag_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MKB_X", "maybe")
    with pytest.raises(env.BadSettingError, match="'maybe' is neither yes nor no"):
        env.flag("MKB_X", True)


def test_numbers_and_lists_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MKB_X", "12")
    monkeypatch.setenv("MKB_Y", "a, b,,c ")
    assert env.number("MKB_X", 3) == 12
    assert env.listed("MKB_Y") == ["a", "b", "c"]


def test_a_bad_number_is_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MKB_X", "twelve")
    with pytest.raises(env.BadSettingError, match="'twelve' is no whole number"):
        env.number("MKB_X", 3)


def test_sqlite_writers_queue_at_begin() -> None:
    settings = database("sqlite:///data/site.sqlite3")
    assert settings["NAME"] == "/data/site.sqlite3"
    assert settings["OPTIONS"]["transaction_mode"] == "IMMEDIATE"


def test_postgresql_addresses_are_taken_apart() -> None:
    settings = database("postgresql://mkb:p%40ss@db.example:5433/board")
    wanted = {
        "USER": "mkb",
        "PASSWORD": "p@ss",
        "HOST": "db.example",
        "PORT": 5433,
        "NAME": "board",
    }
    assert {key: settings[key] for key in wanted} == wanted


def test_other_databases_are_refused() -> None:
    with pytest.raises(env.BadSettingError, match="neither sqlite:///PATH nor postgresql://"):
        database("mysql://localhost/x")
