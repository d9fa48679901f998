"""The app's name for Django."""

from django.apps import AppConfig


class LeaderboardConfig(AppConfig):
    """The only Django app of the project."""

    name = "leaderboard"
