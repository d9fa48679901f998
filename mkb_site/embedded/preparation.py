"""What the embedded default needs before it runs: tables, catalogue, an account, its runs."""

import os
import secrets
import shutil
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import Group, User
from django.core.management import call_command
from django.db import Error as DatabaseError
from django.utils import timezone

from leaderboard.models import Entry, Run
from leaderboard.services import entries, leases, problems, rankings, runs
from mkb_site.embedded.place import CannotStartError, Place

DEMO_NAME = "Demo policy (scripted)"
DEMO_MODEL = "demo-scripted"
OPERATOR = "operator"
# One of each family: what the demo has kernels for, and what a first look at a model may cost.
FIRST_PROBLEMS = (2, 25, 36, 49, 60, 72)
_DEFAULT_ADDRESSES = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
}


def prepare(place: Place) -> None:
    """Bring the database up to date and put back what an earlier stop left under way.

    Raises:
        CannotStartError: the database cannot be written, or ENTRY cannot be met.
    """
    _wanted_model()
    print("Preparing the database ...")
    # Doorbells of an earlier start ring for nobody: the database is the ledger.
    shutil.rmtree(settings.BROKER_DIR, ignore_errors=True)
    for name in ("messages", "processed", "control", "results"):
        (settings.BROKER_DIR / name).mkdir(parents=True, exist_ok=True)
    try:
        call_command("migrate", verbosity=0)
        problems.sync()
        hand_back()
        _ensure_operator(place.folder / "operator-password")
    except (DatabaseError, sqlite3.Error) as error:
        raise CannotStartError(
            f"The database in {place.folder} cannot be written ({error}): free some space, or"
            " choose another folder with MKB_DATA=."
        ) from error


def hand_back() -> None:
    """Put trials that a stopped host left running back into the queue."""
    leases.hand_back_all(timezone.now())


def start_runs(demo_url: str) -> None:
    """Start the demo run unless it was made before, and the run that ENTRY asks for.

    Raises:
        CannotStartError: the entry cannot run.
    """
    _start_once(_demo_entry(demo_url))
    if wanted := _wanted_model():
        _start_once(_real_entry(wanted))
    runs.dispatch_ready()
    for entry in Entry.objects.all():
        rankings.refresh(entry)


def _start_once(entry: Entry) -> None:
    """Start the entry's first run; another one costs its owner, so must be asked for."""
    if Run.objects.filter(entry=entry).exists():
        if not entry.is_scripted:
            again = f"python manage.py start_run {entry.slug}"
            print(f"{entry.name} has a run already, which goes on; `{again}` starts another.")
        return
    try:
        run = runs.start(entry, problems=FIRST_PROBLEMS)
    except ValueError as error:
        raise CannotStartError(f"No run of {entry.name} was started: {error}") from error
    print(
        f"Started run {run.pk}: {entry.name} on {len(FIRST_PROBLEMS)} problems,"
        f" device {run.device}."
    )


def _demo_entry(base_url: str) -> Entry:
    entry = Entry.objects.filter(name=DEMO_NAME).first()
    if entry is None:
        return entries.enter(
            owner=None,
            name=DEMO_NAME,
            provider=Entry.Provider.OPENAI,
            base_url=base_url,
            model_id=DEMO_MODEL,
            api_key="demo",
            is_scripted=True,
        )
    if entry.base_url != base_url:
        entries.change(entry, base_url=base_url, api_key="demo")
    return entry


@dataclass(frozen=True)
class _Wanted:
    """The model that ENTRY asks for, with its key."""

    provider: str
    model_id: str
    base_url: str
    api_key: str


def _wanted_model() -> _Wanted | None:
    """Read ENTRY=provider:model, BASE_URL and the provider's key; None when ENTRY is not set."""
    wanted = os.environ.get("ENTRY")
    if not wanted:
        return None
    provider, _, model_id = wanted.partition(":")
    if provider not in _DEFAULT_ADDRESSES or not model_id:
        raise CannotStartError(
            f"ENTRY={wanted!r} names no model: write ENTRY=openai:MODEL or ENTRY=anthropic:MODEL"
            " (with BASE_URL= for another OpenAI-compatible address)."
        )
    variable = f"{provider.upper()}_API_KEY"
    if not (api_key := os.environ.get(variable)):
        raise CannotStartError(f"ENTRY={wanted} needs a key: set {variable} and try again.")
    base_url = os.environ.get("BASE_URL") or _DEFAULT_ADDRESSES[provider]
    return _Wanted(provider, model_id, base_url, api_key)


def _real_entry(wanted: _Wanted) -> Entry:
    """Return the entry of this model, entered once; its address and key are those of today."""
    entry = Entry.objects.filter(name=wanted.model_id).first()
    if entry is not None:
        entries.change(entry, base_url=wanted.base_url, api_key=wanted.api_key)
        return entry
    return entries.enter(
        owner=User.objects.get(username=OPERATOR),
        name=wanted.model_id,
        provider=wanted.provider,
        base_url=wanted.base_url,
        model_id=wanted.model_id,
        api_key=wanted.api_key,
    )


def _ensure_operator(password_file: Path) -> None:
    """Make one account that may do everything; its password stays in the data folder."""
    reviewers = Group.objects.get(name="reviewers")
    operator, is_new = User.objects.get_or_create(
        username=OPERATOR, defaults={"is_staff": True, "is_superuser": True}
    )
    if is_new:
        password = secrets.token_urlsafe(12)
        password_file.touch(mode=0o600)
        password_file.write_text(password + "\n")
        operator.set_password(password)
        operator.save()
        operator.groups.add(reviewers)
    print(f"Sign in as {OPERATOR}; the password is in {password_file}.")
