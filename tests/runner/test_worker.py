"""Real workers over a real broker: an order goes out, and everything comes home."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import celery
import pytest

from runner import queues, sealing
from runner.judge import QueueJudge
from runner.messages import AttemptOrder, AttemptReport, Endpoint, GradeOrder, PreflightReport
from runner.protocol import EndReason, Outcome
from tests.conftest import Letter, Mailroom
from tests.runner.attempt.scripted import PROBLEM, order
from tests.runner.conftest import sending_to
from tests.runner.endpoint.wire import openai_events, raw, serving, status

PRIVATE, PUBLIC = sealing.new_key_pair()
USAGE = {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6}
LIMIT_SEC = 120.0


@dataclass
class Site:
    """The web side's end of the broker."""

    app: celery.Celery
    letters: list[Letter] = field(default_factory=list)

    def wait_for(self, task: str) -> dict[str, Any]:
        """Take letters home until one of this task is among them."""
        ends_at = time.monotonic() + LIMIT_SEC
        while time.monotonic() < ends_at:
            self.letters += Mailroom(self.app).take(queues.WEB)
            found = [letter for letter in self.letters if letter.task == task]
            if found:
                self.letters.remove(found[0])
                return found[0].payload
            time.sleep(0.1)
        raise AssertionError(f"no {task} within {LIMIT_SEC} s")


def start_worker(data: Path, queue: str, *options: str) -> subprocess.Popen[bytes]:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("DJANGO", "MKB"))
    }
    environment |= {
        "MKB_DATA": str(data),
        "MKB_SEAL_PRIVATE_KEY": PRIVATE,
        "MKB_ALLOW_NETWORKS": "127.0.0.0/8",
    }
    command = [
        sys.executable, "-m", "celery", "-A", "runner.worker", "worker", "-Q", queue,
        "--loglevel", "INFO", "-n", f"{queue}@test", *options,
    ]  # fmt: skip
    with (data / f"{queue}.log").open("wb") as log:
        return subprocess.Popen(command, env=environment, stdout=log, stderr=log)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """An agent worker and a grading worker, started as an operator starts them."""
    data = tmp_path_factory.mktemp("data")
    workers = [
        start_worker(data, queues.AGENT, "--pool", "threads", "--concurrency", "3"),
        start_worker(data, queues.gpu_queue("cpu"), "--pool", "solo"),
    ]
    try:
        with sending_to(data / "broker") as app:
            yield Site(app)
    finally:
        for worker in workers:
            worker.send_signal(signal.SIGTERM)
        for worker in workers:
            worker.wait(timeout=60)
        logs = "".join(path.read_text() for path in data.glob("*.log"))
        assert PRIVATE not in logs
        assert "sk-vendor" not in logs


def endpoint(base_url: str) -> Endpoint:
    sealed = sealing.seal("sk-vendor", base_url=base_url, public_key=PUBLIC)
    return Endpoint("openai", base_url, "m", sealed)


@pytest.mark.e2e
def test_an_attempt_goes_out_and_its_events_and_report_come_home(site: Site) -> None:
    kernel = '{"path": "kernel.py", "content": "def ("}'
    turns = [
        (("a", "write_file", kernel), ("b", "run_shell", '{"command": "ls"}')),
        (("c", "submit", "{}"),),
        (("d", "finish", "{}"),),
    ]
    answers = [status(503, headers={"retry-after": "0"})]
    answers += [raw(openai_events("", calls, USAGE)) for calls in turns]
    with serving(*answers) as wire:
        sent = AttemptOrder(**{**vars(order()), "endpoint": endpoint(f"{wire.url}/v1")})
        queues.send(queues.RUN_ATTEMPT, sent.to_json())
        report = AttemptReport.from_json(site.wait_for(queues.RECORD_REPORT))
    assert report.end_reason is EndReason.FINISHED
    assert report.kernel == "def ("
    assert report.verdict is not None
    assert report.verdict.outcome is Outcome.REFUSED
    events = [letter.payload for letter in site.letters if letter.task == queues.RECORD_EVENT]
    (submission,) = [event["body"] for event in events if event["kind"] == "submission"]
    assert submission["verdict"]["outcome"] == "refused"
    assert submission["counted"] is False
    listing = [event["body"]["text"] for event in events if event["kind"] == "turn"]
    assert any("kernel.py" in text and "TASK.md" in text for text in listing)


@pytest.mark.e2e
def test_a_pre_flight_goes_out_and_its_answer_comes_home(site: Site) -> None:
    with serving(status(401)) as wire:
        checked = endpoint(f"{wire.url}/v1").to_json()
        payload = {"entry_id": 1, "check_token": "t", "endpoint": checked}
        queues.send(queues.CHECK_ENDPOINT, payload)
        report = PreflightReport.from_json(site.wait_for(queues.RECORD_PREFLIGHT))
    assert not report.passed
    assert "key" in report.summary


@pytest.mark.e2e
def test_a_kernel_goes_to_the_queue_of_its_device_and_its_result_is_not_kept(site: Site) -> None:
    grading = GradeOrder(PROBLEM.slug, "tirx", "", "cpu", "smoke")
    verdict = QueueJudge(grading, limit_sec=LIMIT_SEC).grade("def (")
    assert verdict.outcome is Outcome.REFUSED
    results = Path(site.app.conf.result_backend.removeprefix("file://"))
    assert list(results.glob("celery-task-meta-*")) == []


def worker_says(environment: dict[str, str]) -> str:
    clean = {"PATH": os.environ["PATH"], **environment}
    asked = subprocess.run(
        [sys.executable, "-c", "from runner.worker import app; print(app.conf.broker_url)"],
        env=clean,
        capture_output=True,
        text=True,
        check=False,
    )
    return asked.stdout + asked.stderr


def test_a_worker_without_a_broker_folder_says_what_to_set() -> None:
    assert "MKB_DATA is not set; set it to the folder" in worker_says({})


def test_a_worker_takes_redis_from_its_environment() -> None:
    assert "redis://localhost:6379/3" in worker_says({"MKB_BROKER": "redis://localhost:6379/3"})


def test_a_worker_knows_no_django() -> None:
    code = "import sys, runner.tasks; print('leaderboard' in sys.modules, 'torch' in sys.modules)"
    asked = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert asked.stdout.split() == ["False", "False"]
