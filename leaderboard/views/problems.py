"""The catalogue, and one problem with its source and every entry's outcomes."""

from dataclasses import dataclass

from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.safestring import SafeString
from django.views.decorators.http import require_safe

from leaderboard.models import Problem, Trial, transfers_among
from leaderboard.views import marks, texts
from leaderboard.views.cells import Line, lines
from problems import catalog
from runner.protocol import Direction, Dsl


@dataclass(frozen=True)
class Family:
    """Problems of one family."""

    name: str
    problems: list[Problem]


@dataclass(frozen=True)
class ProblemsPage:
    """All that problems.html may use, as `page`."""

    families: list[Family]
    n_problems: int


@dataclass(frozen=True)
class ProblemPage:
    """All that problem.html may use, as `page`; without a file, no source and no workloads."""

    problem: Problem
    family: str
    workloads: tuple[str, ...]
    source: list[SafeString]
    models: list[Line]
    scripted: list[Line]
    dsls: tuple[Dsl, ...] = tuple(Dsl)
    directions: tuple[Direction, ...] = tuple(Direction)
    legend: tuple[marks.Mark, ...] = marks.LEGEND


@require_safe
def problems(request: HttpRequest) -> HttpResponse:
    """List the catalogue by family."""
    graded = Count("trials", filter=Q(trials__status=Trial.Status.GRADED))
    rows = list(Problem.objects.current().annotate(n_graded=graded))
    names = sorted({row.family for row in rows})
    families = [
        Family(family_title(name), [row for row in rows if row.family == name]) for name in names
    ]
    return render(request, "leaderboard/problems.html", {"page": ProblemsPage(families, len(rows))})


@require_safe
def problem(request: HttpRequest, problem_slug: str) -> HttpResponse:
    """Show one problem; a retired one stays at its address."""
    row = get_object_or_404(Problem, slug=problem_slug)
    trials = Trial.objects.filter(problem=row).select_related("run").defer("verdict", "end_detail")
    found = lines(transfers_among(trials))
    workloads, source = _file_of(row)
    page = ProblemPage(
        problem=row,
        family=family_title(row.family),
        workloads=workloads,
        source=source,
        models=[line for line in found if not line.entry.is_scripted],
        scripted=[line for line in found if line.entry.is_scripted],
    )
    return render(request, "leaderboard/problem.html", {"page": page})


def family_title(name: str) -> str:
    """Return a family's name as prose writes it: "kv_cache" → "KV cache"."""
    titles = {"kv_cache": "KV cache", "mlp_norm": "MLP and norm", "moe": "Mixture of experts"}
    return titles.get(name, name.replace("_", " ").capitalize())


def _file_of(row: Problem) -> tuple[tuple[str, ...], list[SafeString]]:
    """Return the workloads and the highlighted source; nothing when the file is gone."""
    try:
        found = catalog.find(row.slug)
    except LookupError:
        return (), []
    return catalog.workloads(found), texts.python_lines(catalog.source_text(found))
