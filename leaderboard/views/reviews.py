"""A reviewer's verdict on one transfer; it counts, or stops counting, at once."""

from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from leaderboard.forms import ReviewForm, taken
from leaderboard.services import reviews
from leaderboard.views import access
from leaderboard.views.transfers import page_of, transfer_or_404


@access.signed_in
@permission_required(access.REVIEW_PERMISSION, raise_exception=True)
@require_POST
def review(
    request: HttpRequest, slug: str, problem_slug: str, direction: str, replicate: int
) -> HttpResponse:
    """Record the verdict and go back to the transfer; a bad form comes back with its faults."""
    transfer = transfer_or_404(slug, problem_slug, direction, replicate)
    form = ReviewForm(request.POST)
    if taken(form, reviews.review, transfer.conditioned, reviewer=request.user):
        messages.success(request, "Your review is recorded.")
        return redirect("transfer", slug, problem_slug, direction, replicate)
    page = page_of(transfer, form)
    return render(request, "leaderboard/transfer.html", {"page": page}, status=422)
