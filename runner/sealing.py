"""Seal a vendor's key with a public key on the web side; open it on agent hosts only."""

import json

from nacl.encoding import URLSafeBase64Encoder
from nacl.exceptions import CryptoError
from nacl.public import PrivateKey, PublicKey, SealedBox


class SealError(Exception):
    """A sealed key that this host cannot open, or that belongs to another address."""


def new_key_pair() -> tuple[str, str]:
    """Return a new (private, public) pair as URL-safe Base64 text."""
    private = PrivateKey.generate()
    return _text(bytes(private)), _text(bytes(private.public_key))


def seal(api_key: str, *, base_url: str, public_key: str) -> str:
    """Return `api_key` sealed for agent hosts and bound to the address it was given for.

    Raises:
        ValueError: the public key is not one of ours.
    """
    letter = json.dumps({"key": api_key, "base_url": base_url}).encode()
    return _text(SealedBox(_public(public_key)).encrypt(letter))


def open_sealed(sealed: str, *, base_url: str, private_key: str) -> str:
    """Return the key inside `sealed`.

    Raises:
        SealError: sealed for another private key, damaged, or given for another address.
    """
    try:
        private = PrivateKey(private_key.encode(), encoder=URLSafeBase64Encoder)
        letter = json.loads(SealedBox(private).decrypt(sealed.encode(), URLSafeBase64Encoder))
    except (CryptoError, ValueError, TypeError) as error:
        raise SealError(
            "the stored key cannot be opened on this host: it was sealed with another public key"
            " or is damaged; enter the key again"
        ) from error
    if letter["base_url"] != base_url:
        raise SealError(
            f"the stored key was given for another address than {base_url}; enter the key again"
        )
    return str(letter["key"])


def _public(text: str) -> PublicKey:
    try:
        return PublicKey(text.encode(), encoder=URLSafeBase64Encoder)
    except (CryptoError, ValueError, TypeError) as error:
        raise ValueError(f"{text!r} is no public sealing key; make one: new_key_pair") from error


def _text(raw: bytes) -> str:
    return URLSafeBase64Encoder.encode(raw).decode()
