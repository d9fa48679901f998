"""The secrets of a data folder."""

import stat
from pathlib import Path

from mkb_site.embedded import keys
from runner import sealing


def test_keys_are_made_once_and_read_ever_after(tmp_path: Path) -> None:
    first = keys.ensure(tmp_path / "keys")
    assert keys.ensure(tmp_path / "keys") == first


def test_only_the_owner_may_read_them(tmp_path: Path) -> None:
    made = keys.ensure(tmp_path / "keys")
    files = list((tmp_path / "keys").iterdir())
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE(made.seal_private_file.parent.stat().st_mode) == 0o700


def test_the_two_halves_belong_together(tmp_path: Path) -> None:
    made = keys.ensure(tmp_path / "keys")
    sealed = sealing.seal("secret", base_url="http://a", public_key=made.seal_public)
    private = made.seal_private_file.read_text()
    assert sealing.open_sealed(sealed, base_url="http://a", private_key=private) == "secret"


def test_two_folders_have_different_secrets(tmp_path: Path) -> None:
    one, other = keys.ensure(tmp_path / "one"), keys.ensure(tmp_path / "other")
    assert one.django_secret != other.django_secret
    assert one.seal_public != other.seal_public
