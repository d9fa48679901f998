"""manage.py start_run: plan a run of an entry and send its first orders."""

from argparse import ArgumentTypeError
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from leaderboard.models import Entry, Problem
from leaderboard.services import runs
from leaderboard.services.refusals import Refusal
from runner.protocol import BUDGET_SEC, SUBMISSION_LIMIT


class Command(BaseCommand):
    """Calls the service and prints the run's number and address."""

    help = "Start a run of an entry on chosen problems."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("entry", help="the entry's slug")
        parser.add_argument(
            "--problems",
            type=_numbers,
            default=(),
            metavar="2,25,…",
            help="numbers of the catalogue, or all (the default)",
        )
        parser.add_argument("--replicates", type=int, default=1, help="of every arm")
        parser.add_argument("--device", help="where kernels are graded; the site's own if left out")
        parser.add_argument("--workload", choices=runs.WORKLOADS)
        parser.add_argument("--budget-sec", type=int, default=BUDGET_SEC, help="of one attempt")
        parser.add_argument("--submissions", type=int, default=SUBMISSION_LIMIT, help="likewise")

    def handle(self, *_args: Any, **options: Any) -> None:
        numbers = options["problems"] or Problem.objects.current().values_list("number", flat=True)
        try:
            run = runs.start(
                _entry(options["entry"]),
                problems=list(numbers),
                n_replicates=options["replicates"],
                device=options["device"],
                workload=options["workload"],
                budget_sec=options["budget_sec"],
                submission_limit=options["submissions"],
            )
        except Refusal as refusal:
            raise CommandError(str(refusal)) from refusal
        self.stdout.write(f"run {run.pk} of {run.entry} started: /runs/{run.pk}/")


def _entry(slug: str) -> Entry:
    found = Entry.objects.filter(slug=slug).first()
    if found is None:
        existing = ", ".join(Entry.objects.values_list("slug", flat=True)) or "none yet"
        raise CommandError(f"There is no entry {slug!r}; there are: {existing}.")
    return found


def _numbers(text: str) -> tuple[int, ...]:
    """Read "2,25" as two numbers and "all" as none chosen."""
    if text.strip() == "all":
        return ()
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise ArgumentTypeError(
            f"{text!r} is no list of problem numbers; write 2,25,36 or all"
        ) from error
