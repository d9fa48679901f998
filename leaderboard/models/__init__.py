"""The tables, one noun a module."""

from leaderboard.models.artefacts import Artefact
from leaderboard.models.attempts import Event, Submission
from leaderboard.models.entries import Entry
from leaderboard.models.problems import Problem
from leaderboard.models.rankings import Ranking
from leaderboard.models.reviews import Review
from leaderboard.models.runs import Run
from leaderboard.models.transfers import Transfer, find_transfer, transfers_among, transfers_of
from leaderboard.models.trials import Trial

__all__ = [
    "Artefact",
    "Entry",
    "Event",
    "Problem",
    "Ranking",
    "Review",
    "Run",
    "Submission",
    "Transfer",
    "Trial",
    "find_transfer",
    "transfers_among",
    "transfers_of",
]
