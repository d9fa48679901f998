"""Opening an account; login and logout are Django's own."""

from django.contrib.auth import login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from leaderboard.forms import SignupForm, sent, status_of


@sensitive_post_parameters("password1", "password2")
@require_http_methods(["GET", "HEAD", "POST"])
def signup(request: HttpRequest) -> HttpResponse:
    """Make an account from a name and a password, and sign it in."""
    form = SignupForm(sent(request))
    if form.is_valid():
        login(request, form.save())
        return redirect("vendor")
    return render(request, "leaderboard/signup.html", {"form": form}, status=status_of(form))
