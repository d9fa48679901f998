"""Every address of the site."""

from django.contrib.auth.views import LoginView, LogoutView
from django.urls import path

from leaderboard.api import api
from leaderboard.views import (
    accounts,
    board,
    documents,
    entries,
    health,
    problems,
    reviews,
    runs,
    transfers,
    trials,
    vendors,
)

_TRANSFER = "entries/<slug:slug>/<slug:problem_slug>/<slug:direction>/r<int:replicate>/"
_TRIAL = "entries/<slug:slug>/trials/<slug:coordinate>/"
_MINE = "vendor/entries/<slug:slug>/"
_LOGIN = LoginView.as_view(template_name="leaderboard/login.html", redirect_authenticated_user=True)

urlpatterns = [
    path("", board.board, name="board"),
    path("results/", board.board_results, name="board-results"),
    path("entries/<slug:slug>/", entries.entry, name="entry"),
    path(_TRIAL, trials.trial, name="trial"),
    path(f"{_TRIAL}progress/", trials.trial_progress, name="trial-progress"),
    path(f"{_TRIAL}kernel.py", trials.trial_kernel, name="trial-kernel"),
    path(f"{_TRIAL}SKILL.md", trials.trial_skill, name="trial-skill"),
    path(_TRANSFER, transfers.transfer, name="transfer"),
    path(f"{_TRANSFER}review/", reviews.review, name="review"),
    path("problems/", problems.problems, name="problems"),
    path("problems/<slug:problem_slug>/", problems.problem, name="problem"),
    path("runs/<int:pk>/", runs.run, name="run"),
    path("runs/<int:pk>/trials/", runs.run_trials, name="run-trials"),
    path("vendor/", vendors.vendor, name="vendor"),
    path("vendor/entries/new/", vendors.entry_new, name="entry-new"),
    path(_MINE, vendors.entry_manage, name="entry-manage"),
    path(f"{_MINE}check/", vendors.entry_check, name="entry-check"),
    path(f"{_MINE}preflight/", vendors.entry_preflight, name="entry-preflight"),
    path(f"{_MINE}runs/new/", runs.run_new, name="run-new"),
    path("accounts/login/", _LOGIN, name="login"),
    path("accounts/logout/", LogoutView.as_view(), name="logout"),
    path("accounts/signup/", accounts.signup, name="signup"),
    path("methods/", documents.methods, name="methods"),
    path("about/", documents.about, name="about"),
    path("robots.txt", documents.robots, name="robots"),
    path("healthz", health.healthz, name="healthz"),
    path("api/v1/", api.urls),
]
