"""Kernels and skills as text, stored once under their digest."""

import hashlib

from django.db import models


class ArtefactQuerySet(models.QuerySet["Artefact"]):
    """How texts come in."""

    def keep(self, text: str) -> "Artefact":
        """Return the row of this text, made on first sight."""
        digest = Artefact.digest_of(text)
        return self.get_or_create(digest=digest, defaults={"text": text})[0]


class Artefact(models.Model):
    """One kernel or skill; the same text is one row wherever it was written."""

    digest = models.CharField(max_length=64, primary_key=True)
    text = models.TextField()

    objects = ArtefactQuerySet.as_manager()

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="artefact_has_sha256", condition=models.Q(digest__regex=r"^[0-9a-f]{64}$")
            ),
        ]

    def __str__(self) -> str:
        return self.digest[:12]

    @classmethod
    def digest_of(cls, text: str) -> str:
        """Return the SHA-256 of the text's UTF-8 bytes, in hexadecimal."""
        return hashlib.sha256(text.encode()).hexdigest()
