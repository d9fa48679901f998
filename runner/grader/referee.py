"""Grade one kernel: read it, run it in a child, and say in a verdict what was found."""

import hashlib
import importlib
import time
from dataclasses import dataclass
from types import ModuleType

from problems import catalog
from problems.catalog import Problem
from runner.grader import environment, legality, limits, timing
from runner.grader.faults import HostError, KernelError
from runner.grader.legality import Reading
from runner.grader.record import Record, Work
from runner.grader.session import Session
from runner.messages import GradeOrder, Mismatch, Verdict
from runner.protocol import Dsl, Outcome

DEVICES = ("cpu", "cuda")
HELDOUT = "heldout"


class BadOrderError(ValueError):
    """An order that names no problem, DSL, device or workload; nothing was graded."""


@dataclass(frozen=True)
class Task:
    """An order, understood. `workloads` are run in turn; only `is_timed` ones are timed."""

    problem: Problem
    dsl: Dsl
    device: str
    workload: str
    workloads: tuple[str, ...]

    @property
    def is_timed(self) -> bool:
        """Held-out workloads are for correctness alone."""
        return not self.workload.startswith(HELDOUT)


def understand(order: GradeOrder) -> Task:
    """Read an order, all but its kernel.

    Raises:
        BadOrderError: a name in it is unknown; the message lists those that exist.
    """
    try:
        problem = catalog.find(order.problem)
    except LookupError as error:
        raise BadOrderError(str(error.args[0])) from error
    if order.dsl not in set(Dsl):
        raise BadOrderError(f"no DSL is called {order.dsl!r}; there are: {', '.join(Dsl)}")
    if order.device not in DEVICES:
        raise BadOrderError(
            f"no device is called {order.device!r}; the grader knows: {', '.join(DEVICES)}"
        )
    existing = catalog.workloads(problem)
    if order.workload == HELDOUT:
        chosen = tuple(name for name in existing if name.startswith(HELDOUT))
    else:
        chosen = tuple(name for name in existing if name == order.workload)
    if not chosen:
        names = ", ".join((*existing, HELDOUT))
        raise BadOrderError(
            f"{problem.slug} has no workload {order.workload!r}; there are: {names}"
        )
    return Task(problem, Dsl(order.dsl), order.device, order.workload, chosen)


def grade(order: GradeOrder, *, limit_sec: float = limits.LIMIT_SEC) -> Verdict:
    """Grade a kernel and return the verdict, whatever the kernel does.

    Uses this process's torch generator, numerics and, while timing, its core affinity.

    Args:
        limit_sec: for everything together; when it is over, the kernel is killed (`timeout`).

    Raises:
        BadOrderError: the order is not about anything that exists.
    """
    task = understand(order)
    record = Record(stage="reading")
    record.environment = _environment(task, order.kernel)
    reading = legality.read(order.kernel, task.dsl)
    record.findings += reading.findings
    if reading.outcome is not None:
        return verdict(task, record, reading.outcome, reading.message)
    try:
        _run(task, order.kernel, reading, record, deadline=time.monotonic() + limit_sec)
    except KernelError as fault:
        return verdict(task, record, fault.outcome, str(fault), fault.mismatch)
    except HostError as fault:
        return verdict(task, record, Outcome.INFRASTRUCTURE, str(fault))
    # The boundary: a fault in our own code must not be charged to a kernel.
    except Exception as error:
        message = f"the grader failed at {record.stage}: {type(error).__name__}: {error}"
        return verdict(task, record, Outcome.INFRASTRUCTURE, message)
    return verdict(task, record, Outcome.PASSED, _praise(task, record))


def refuse(order: GradeOrder, reading: Reading) -> Verdict:
    """Return the verdict on a file that was refused before it had a text."""
    task = understand(order)
    outcome = reading.outcome or Outcome.REFUSED
    return verdict(task, Record(stage="reading"), outcome, reading.message)


def verdict(
    task: Task,
    record: Record,
    outcome: Outcome,
    message: str,
    mismatch: Mismatch | None = None,
) -> Verdict:
    """Put a verdict together from what is on record."""
    passed = outcome is Outcome.PASSED
    return Verdict(
        outcome=outcome,
        stage="done" if passed else record.stage,
        message=message,
        problem=task.problem.slug,
        dsl=task.dsl.value,
        device=task.device,
        workload=task.workload,
        n_correct_draws=record.n_correct_draws,
        kernel_ms=record.kernel_ms,
        eager_ms=record.eager_ms,
        kernel_draws_ms=record.kernel_draws_ms,
        eager_draws_ms=record.eager_draws_ms,
        mismatch=mismatch,
        error_ratio=record.error_ratio,
        rms_ratio=record.rms_ratio,
        findings=tuple(dict.fromkeys(record.findings)),
        isolation=str(record.environment.get("isolation", "")),
        log_tail=record.log_tail,
        elapsed_sec=round(record.elapsed_sec, 4),
        harness_sec=round(record.harness_sec, 4),
        environment={**record.environment, "spent_sec": record.rounded_spent_sec},
    )


def _run(task: Task, kernel: str, reading: Reading, record: Record, *, deadline: float) -> None:
    record.stage = "start"
    idle_before = timing.idle_ticks()
    with Session(kernel, dsl=task.dsl, device=task.device, deadline=deadline) as session:
        record.environment["isolation"] = session.isolation
        try:
            _examine(task, session, reading, record, idle_before)
        finally:
            session.end()
            record.log_tail = session.log_tail
            if task.device == "cuda":
                record.environment["card_after"] = environment.card()


def _examine(
    task: Task, session: Session, reading: Reading, record: Record, idle_before: dict[int, int]
) -> None:
    with record.spending(Work.IMPORTS):
        # The child imports torch meanwhile: so does this process, only now.
        cases, examine = _with_torch(task.device)
    examiner = examine.Examiner(session, record, device=task.device)
    made = [cases.Case(task.problem, workload=w, device=task.device) for w in task.workloads]
    first = examiner.prepare(made[0])
    form = first.expected.form
    with record.spending(Work.IMPORTS):
        record.environment |= session.ready()
    core = timing.idlest_core(idle_before)
    with timing.pinned(session.pid, core, device=task.device):
        overhead = examiner.calibrate(made[0], first)
    examiner.load(reading.suspects)
    for case, workload in zip(made, task.workloads, strict=True):
        record.stage = workload if len(made) > 1 else "correctness"
        examiner.correctness(case, first)
        first = None
    if task.is_timed:
        core = timing.idlest_core(idle_before)
        record.environment |= {
            "core": core,
            "overhead_us": round(overhead.wall_ns / 1e3, 1),
            "clock_slack_us": round(overhead.slack_ns / 1e3, 1),
        }
        with timing.pinned(session.pid, core, device=task.device):
            examiner.time(made[0], form, overhead)


def _with_torch(device: str) -> tuple[ModuleType, ModuleType]:
    """Import what needs torch.

    Raises:
        HostError: torch is not installed, or there is no CUDA device.
    """
    try:
        torch = importlib.import_module("torch")
        cases = importlib.import_module("runner.grader.cases")
        examine = importlib.import_module("runner.grader.examine")
    except ImportError as error:
        raise HostError(
            f"the grader needs torch: {error}; install metakernelbench[runner]"
        ) from error
    if device == "cuda" and not torch.cuda.is_available():
        raise HostError("this host has no CUDA device; grade with --device cpu, or elsewhere")
    if device == "cpu":
        torch.set_num_threads(1)
    cases.set_numerics()
    return cases, examine


def _environment(task: Task, kernel: str) -> dict[str, object]:
    facts: dict[str, object] = environment.host() | {
        "grader": limits.GRADER_VERSION,
        "problem_fingerprint": task.problem.fingerprint,
        "kernel_sha256": hashlib.sha256(kernel.encode(errors="replace")).hexdigest(),
    }
    if task.device == "cuda":
        facts["card_before"] = environment.card()
    return facts


def _praise(task: Task, record: Record) -> str:
    if record.kernel_ms is None or record.eager_ms is None:
        return f"correct in all {record.n_correct_draws} draws of {', '.join(task.workloads)}"
    return (
        f"correct in all draws; {record.kernel_ms:.4f} ms against eager's {record.eager_ms:.4f} ms,"
        f" {record.eager_ms / record.kernel_ms:.2f} times as fast"
    )
