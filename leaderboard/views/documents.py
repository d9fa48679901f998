"""Pages of prose: what the numbers mean, and what this site is."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

_ROBOTS = "User-agent: *\nDisallow: /vendor/\nDisallow: /accounts/\nDisallow: /admin/\n"


@require_safe
def methods(request: HttpRequest) -> HttpResponse:
    """Define every number on the site."""
    return render(request, "leaderboard/methods.html")


@require_safe
def about(request: HttpRequest) -> HttpResponse:
    """Say what the site measures, and quote the paper it follows."""
    return render(request, "leaderboard/about.html")


@require_safe
def robots(_request: HttpRequest) -> HttpResponse:
    """Ask crawlers to stay out of the pages that belong to accounts."""
    return HttpResponse(_ROBOTS, content_type="text/plain; charset=utf-8")
