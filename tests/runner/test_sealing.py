"""A vendor's key opens on the right host, for the right address, and nowhere else."""

import pytest

from runner.sealing import SealError, new_key_pair, open_sealed, seal

URL = "https://vendor.example/v1"
PRIVATE, PUBLIC = new_key_pair()


def test_a_sealed_key_opens_with_the_private_half_for_its_address() -> None:
    sealed = seal("sk-ü-secret", base_url=URL, public_key=PUBLIC)
    assert "secret" not in sealed
    assert open_sealed(sealed, base_url=URL, private_key=PRIVATE) == "sk-ü-secret"


def test_the_same_key_sealed_twice_looks_different() -> None:
    first, second = (seal("sk", base_url=URL, public_key=PUBLIC) for _ in range(2))
    assert first != second


def test_it_does_not_open_for_another_address() -> None:
    sealed = seal("sk", base_url=URL, public_key=PUBLIC)
    with pytest.raises(SealError, match=r"https://evil\.example"):
        open_sealed(sealed, base_url="https://evil.example", private_key=PRIVATE)


def test_it_does_not_open_with_another_private_key() -> None:
    sealed = seal("sk", base_url=URL, public_key=PUBLIC)
    with pytest.raises(SealError, match="another public key"):
        open_sealed(sealed, base_url=URL, private_key=new_key_pair()[0])


@pytest.mark.parametrize("sealed", ["", "nonsense", "AAAA", "ü"])
def test_a_damaged_letter_does_not_open(sealed: str) -> None:
    with pytest.raises(SealError, match="enter the key again"):
        open_sealed(sealed, base_url=URL, private_key=PRIVATE)


@pytest.mark.parametrize("private_key", ["", "short", PUBLIC[:-4]])
def test_a_host_with_a_broken_private_key_says_so(private_key: str) -> None:
    sealed = seal("sk", base_url=URL, public_key=PUBLIC)
    with pytest.raises(SealError, match="cannot be opened on this host"):
        open_sealed(sealed, base_url=URL, private_key=private_key)


def test_sealing_needs_one_of_our_public_keys() -> None:
    with pytest.raises(ValueError, match="new_key_pair"):
        seal("sk", base_url=URL, public_key="not-a-key")
