"""Enter a model under a public name, change its endpoint, and have the endpoint checked."""

import secrets
from dataclasses import dataclass
from functools import partial
from urllib.parse import urlsplit

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone
from django.utils.text import slugify

from leaderboard.models import Entry
from leaderboard.services.dispatch import endpoint_of
from leaderboard.services.refusals import Refusal
from leaderboard.services.texts import storable, storable_json
from runner import queues, sealing
from runner.messages import PreflightOrder, PreflightReport

# /vendor/entries/new/ is a page of its own.
_RESERVED_SLUGS = {"new"}
# What people write; the address is judged apart, for Django's rule knows no one-word hosts.
_WRITTEN = {"name", "slug", "provider", "model_id"}


@transaction.atomic
def enter(  # noqa: PLR0913 - a form's fields
    *,
    owner: AbstractBaseUser | None,
    name: str,
    provider: str,
    base_url: str,
    model_id: str,
    api_key: str = "",
    is_scripted: bool = False,
) -> Entry:
    """Make an entry. The key is sealed at once and bound to the address; nobody reads it here.

    Raises:
        Refusal: a name that is taken, or anything that no endpoint can have.
    """
    entry = Entry(
        owner_id=owner.pk if owner else None,
        name=name.strip(),
        provider=provider,
        base_url=_address(base_url),
        model_id=model_id.strip(),
        is_scripted=is_scripted,
    )
    entry.slug = _free_slug(entry.name)
    entry.sealed_key = _sealed(api_key, entry.base_url)
    _check(entry)
    entry.save()
    return entry


@dataclass(frozen=True)
class _Before:
    """What the endpoint was."""

    provider: str
    base_url: str
    model_id: str


@transaction.atomic
def change(
    entry: Entry,
    *,
    name: str | None = None,
    provider: str | None = None,
    base_url: str | None = None,
    model_id: str | None = None,
    api_key: str = "",
) -> Entry:
    """Change what is given; None and an empty key stay as they are. The slug is for good.

    A new address clears the key, unless a new one comes along: a key goes only where its owner
    sent it. Whatever changes the endpoint makes it unchecked.

    Raises:
        Refusal: as for `enter`; or another model under a name that has results.
    """
    entry = Entry.objects.select_for_update(no_key=True).get(pk=entry.pk)
    before = _Before(entry.provider, entry.base_url, entry.model_id)
    entry.name = entry.name if name is None else name.strip()
    entry.provider = entry.provider if provider is None else provider
    entry.base_url = entry.base_url if base_url is None else _address(base_url)
    entry.model_id = entry.model_id if model_id is None else model_id.strip()
    if entry.model_id != before.model_id and entry.trials.exists():
        raise Refusal(
            f"{before.model_id} has results under the name {entry}; make a new entry for"
            f" {entry.model_id}."
        )
    if api_key or entry.base_url != before.base_url:
        entry.sealed_key = _sealed(api_key, entry.base_url)
    if api_key or before != _Before(entry.provider, entry.base_url, entry.model_id):
        entry.preflight = Entry.Preflight.UNCHECKED
        entry.preflight_token = entry.preflight_summary = ""
        entry.preflight_steps = []
        entry.preflight_at = None
    _check(entry)
    entry.save()
    return entry


@transaction.atomic
def check(entry: Entry) -> Entry:
    """Have an agent host try the endpoint; the answer comes home as a pre-flight report.

    A check that is still out is forgotten: only the newest one's answer is taken.
    """
    token = secrets.token_hex(16)
    Entry.objects.filter(pk=entry.pk).update(
        preflight=Entry.Preflight.CHECKING,
        preflight_token=token,
        preflight_summary="",
        preflight_steps=[],
        preflight_at=None,
    )
    entry.refresh_from_db()
    order = PreflightOrder(entry.pk, token, endpoint_of(entry))
    transaction.on_commit(
        partial(
            queues.send,
            queues.CHECK_ENDPOINT,
            order.to_json(),
            expires_sec=settings.DISPATCH_SEC,
        )
    )
    return entry


def record_preflight(report: PreflightReport) -> bool:
    """Store what the endpoint answered; return whether this was the newest check. Safe to repeat.

    Only the answer to the check that is out is taken: the token decides.
    """
    passed = Entry.Preflight.PASSED if report.passed else Entry.Preflight.FAILED
    waiting = Entry.objects.filter(
        pk=report.entry_id,
        preflight=Entry.Preflight.CHECKING,
        preflight_token=report.check_token,
    )
    return bool(
        waiting.update(
            preflight=passed,
            preflight_summary=storable(report.summary),
            preflight_steps=storable_json(report.steps),
            preflight_at=timezone.now(),
        )
    )


def _address(text: str) -> str:
    """Return a base URL as stored; where it may lead is judged on agent hosts, at every use."""
    address = text.strip()
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise Refusal(f"The address {address!r} cannot be read: {error}.") from error
    if parts.scheme not in ("http", "https") or not host:
        raise Refusal(
            f"The address {address!r} is none of an endpoint; write it like"
            " https://api.example.com/v1."
        )
    if "@" in parts.netloc:
        raise Refusal("An address holds no user name or password; the key has its own field.")
    if parts.query or parts.fragment or any(sign.isspace() for sign in address):
        raise Refusal(
            f"The address {address!r} has parts that a base URL cannot have: ? # or space."
        )
    return address


def _sealed(api_key: str, base_url: str) -> str:
    key = api_key.strip()
    if not key:
        return ""
    return sealing.seal(key, base_url=base_url, public_key=settings.SEAL_PUBLIC_KEY)


def _free_slug(name: str) -> str:
    stem = slugify(name)[:50] or "entry"
    taken = set(Entry.objects.filter(slug__startswith=stem).values_list("slug", flat=True))
    taken |= _RESERVED_SLUGS
    slug, number = stem, 1
    while slug in taken:
        number += 1
        slug = f"{stem}-{number}"
    return slug


def _check(entry: Entry) -> None:
    """Let the table's own rules speak, in a sentence; the address has been judged already."""
    try:
        entry.full_clean(exclude={field.name for field in Entry._meta.fields} - _WRITTEN)
    except ValidationError as error:
        sentences = [
            f"{name.replace('_', ' ')}: {' '.join(messages)}" if name != "__all__" else messages[0]
            for name, messages in error.message_dict.items()
        ]
        raise Refusal("; ".join(sentences)) from error
    if len(entry.base_url) > 300:
        raise Refusal("The address is longer than 300 characters; give the endpoint's own.")
