"""manage.py sync_problems: bring the catalogue's rows in line with its files."""

from typing import Any

from django.core.management.base import BaseCommand

from leaderboard.services import problems


class Command(BaseCommand):
    """Calls the service and prints what it touched."""

    help = "Bring the catalogue's rows in line with the files under problems/."

    def handle(self, *_args: Any, **_options: Any) -> None:
        result = problems.sync()
        for verb, slugs in vars(result).items():
            for slug in slugs:
                self.stdout.write(f"{verb} {slug}")
        counts = ", ".join(f"{len(slugs)} {verb}" for verb, slugs in vars(result).items())
        self.stdout.write(counts)
