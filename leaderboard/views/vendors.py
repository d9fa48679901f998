"""A vendor's own pages: entries, their endpoints and keys, and what the pre-flight answered."""

from dataclasses import dataclass

from django.contrib import messages
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import (
    conditional_page,
    require_http_methods,
    require_POST,
    require_safe,
)

from leaderboard.forms import EntryChangeForm, EntryForm, sent, status_of, taken
from leaderboard.models import Entry, Run
from leaderboard.services import entries
from leaderboard.views import access


@dataclass(frozen=True)
class ManagePage:
    """All that entry_manage.html and _preflight.html may use, as `page`."""

    entry: Entry
    has_key: bool
    is_settled: bool
    runs: list[Run]


@access.signed_in
@require_safe
def vendor(request: HttpRequest) -> HttpResponse:
    """List the signed-in account's entries."""
    mine = Entry.objects.owned_by(request.user).annotate(n_runs=Count("runs"))
    return render(request, "leaderboard/vendor.html", {"entries": mine})


@access.signed_in
@sensitive_post_parameters("api_key")
@require_http_methods(["GET", "HEAD", "POST"])
def entry_new(request: HttpRequest) -> HttpResponse:
    """Enter an endpoint; its key is sealed on the way in and never comes out."""
    form = EntryForm(sent(request))
    if entry := taken(form, entries.enter, owner=request.user):
        entries.check(entry)
        messages.success(request, f"{entry.name} is entered; its endpoint is being checked.")
        return redirect("entry-manage", slug=entry.slug)
    context = {"form": form}
    return render(request, "leaderboard/entry_new.html", context, status=status_of(form))


@access.signed_in
@sensitive_post_parameters("api_key")
@require_http_methods(["GET", "HEAD", "POST"])
def entry_manage(request: HttpRequest, slug: str) -> HttpResponse:
    """Show what the pre-flight answered, and change the endpoint."""
    entry = access.owned_entry(request, slug)
    form = EntryChangeForm(sent(request), initial=EntryChangeForm.initial_of(entry))
    if changed := taken(form, entries.change, entry):
        entries.check(changed)
        messages.success(request, "Saved; the endpoint is being checked.")
        return redirect("entry-manage", slug=entry.slug)
    context = {"page": _page(entry), "form": form}
    return render(request, "leaderboard/entry_manage.html", context, status=status_of(form))


@access.signed_in
@require_POST
def entry_check(request: HttpRequest, slug: str) -> HttpResponse:
    """Try the endpoint once more."""
    entries.check(access.owned_entry(request, slug))
    return redirect("entry-manage", slug=slug)


@access.signed_in
@require_safe
@conditional_page
def entry_preflight(request: HttpRequest, slug: str) -> HttpResponse:
    """Return the pre-flight's answer alone, or 304; static/js/live.js polls it."""
    page = _page(access.owned_entry(request, slug))
    return render(request, "leaderboard/_preflight.html", {"page": page})


def _page(entry: Entry) -> ManagePage:
    return ManagePage(
        entry=entry,
        has_key=bool(entry.sealed_key),
        is_settled=entry.preflight != Entry.Preflight.CHECKING,
        runs=list(entry.runs.annotate(n_trials=Count("trials"))),
    )
