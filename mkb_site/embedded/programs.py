"""The programs of the embedded default, and their environment."""

import os
import sys
import time
import urllib.error
import urllib.request

from django.conf import settings

from mkb_site.embedded.place import CannotStartError, Place
from mkb_site.embedded.processes import Group, Program, celery
from runner import queues

N_ATTEMPTS_AT_ONCE = 3
START_LIMIT_SEC = 60.0


def start_all(place: Place, *, demo_port: int) -> Group:
    """Start the model server, the workers of all three queues, and the web server."""
    folder = place.folder
    group = Group(
        logs=folder / "logs",
        environment={
            **os.environ,
            "MKB_BROKER": settings.BROKER_URL,
            "MKB_SEAL_PRIVATE_KEY_FILE": str(folder / "keys" / "seal-private"),
            "MKB_ALLOW_NETWORKS": os.environ.get("MKB_ALLOW_NETWORKS", "127.0.0.0/8,::1/128"),
            "MKB_DEMO_URL": f"http://127.0.0.1:{demo_port}/v1",
            "PYTHONUNBUFFERED": "1",
        },
    )
    for program in _programs(place, demo_port):
        group.start(program)
    return group


def wait_until_served(place: Place, group: Group) -> None:
    """Wait for the web server's first answer.

    Raises:
        CannotStartError: a program died first, or no answer came in START_LIMIT_SEC.
    """
    deadline = time.monotonic() + START_LIMIT_SEC
    while time.monotonic() < deadline:
        if name := group.dead():
            raise CannotStartError(f"The {name} did not start; its log is {group.log_of(name)}.")
        try:
            with urllib.request.urlopen(f"{place.url}/healthz", timeout=5):  # noqa: S310
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    raise CannotStartError(
        f"The web server gave no answer in {START_LIMIT_SEC:.0f} s; its log is"
        f" {group.log_of('web server')}."
    )


def _programs(place: Place, demo_port: int) -> list[Program]:
    """List the web server first: a person waits for it, the runs wait for the rest."""
    agents = ("--pool", "threads", "--concurrency", str(N_ATTEMPTS_AT_ONCE))
    beat = ("--pool", "solo", "--beat", "--schedule", str(place.folder / "broker" / "schedule"))
    grading = queues.gpu_queue(settings.DEFAULT_DEVICE)
    web = ("--bind", f"127.0.0.1:{place.port}", "--threads", "8", "--no-control-socket")
    python = (sys.executable, "-m")
    return [
        Program("web server", (*python, "gunicorn", "mkb_site.wsgi", *web)),
        Program("demo model server", (*python, "runner.demo", "--port", str(demo_port))),
        Program("record keeper", celery("mkb_site", queues.WEB, *beat)),
        Program("agent host", celery("runner.worker", queues.AGENT, *agents)),
        Program("grading host", celery("runner.worker", grading, "--pool", "solo")),
    ]
