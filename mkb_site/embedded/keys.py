"""The secrets of one machine's data folder, made on first use and kept readable by its owner."""

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from runner import sealing


@dataclass(frozen=True)
class Keys:
    """Django's secret, and the pair that seals vendors' keys; the private half stays a file."""

    django_secret: str
    seal_public: str
    seal_private_file: Path


def ensure(folder: Path) -> Keys:
    """Return the folder's keys, made if they are not there.

    Raises:
        OSError: the folder cannot be written or read.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    public_file, private_file = folder / "seal-public", folder / "seal-private"
    if not public_file.exists():
        private, public = sealing.new_key_pair()
        _keep(private_file, private)
        _keep(public_file, public)
    _keep(folder / "django-secret", secrets.token_urlsafe(50))
    return Keys(
        django_secret=(folder / "django-secret").read_text(),
        seal_public=public_file.read_text(),
        seal_private_file=private_file,
    )


def _keep(path: Path, text: str) -> None:
    """Write a file that only its owner reads; the first of two writers wins."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
