"""Who may reach what: a stranger learns nothing, not even that a thing exists."""

from collections.abc import Callable

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404

from leaderboard.models import Entry

REVIEW_PERMISSION = "leaderboard.add_review"


def owned_entry(request: HttpRequest, slug: str) -> Entry:
    """Return the signed-in account's own entry.

    Raises:
        Http404: there is no such entry, or it is somebody else's.
    """
    return get_object_or_404(Entry.objects.owned_by(request.user), slug=slug)


def may_review(request: HttpRequest) -> bool:
    """Say whether this account may give verdicts on transfers."""
    return request.user.has_perm(REVIEW_PERMISSION)


def signed_in(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Send visitors without an account to the login page, and keep the page out of caches."""

    def guarded(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponse:
        response = view(request, *args, **kwargs)
        response.headers.setdefault("Cache-Control", "private, no-store")
        return response

    return login_required(guarded)
