"""The heart: one transfer with its panes, words, verdicts and reviews."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from leaderboard.models import Artefact, Trial
from runner.protocol import Arm, Direction, Outcome
from tests.leaderboard import factories
from tests.leaderboard.factories import Result
from tests.leaderboard.views.test_board import html_of, text_of

pytestmark = pytest.mark.django_db

ADDRESS = "/entries/model-a/02_problem/cutedsl2tirx/r1/"


def replicate(*results: Result) -> dict[Arm, Trial]:
    """The trials that the transfer at ADDRESS is made of."""
    chosen = results or (2.0, 1.0, 1.5, 1.0)
    return factories.make_replicate(factories.make_run(), factories.make_problem(), chosen)


@pytest.mark.parametrize(
    "address",
    [
        "/entries/nobody/02_problem/cutedsl2tirx/r1/",
        "/entries/model-a/99_problem/cutedsl2tirx/r1/",
        "/entries/model-a/02_problem/cutedsl2cutedsl/r1/",
        "/entries/model-a/02_problem/cutedsl2tirx/r2/",
    ],
)
def test_an_address_where_nothing_was_planned_is_not_found(client: Client, address: str) -> None:
    replicate()
    assert client.get(address).status_code == 404


@pytest.mark.parametrize(
    ("results", "sentence"),
    [
        # Solo 1.0 and conditioned 1.5: 1.0 / 1.5 = 0.667 of the time.
        ((2.0, 1.0, 1.5, 1.0), "takes 0.667 × the solo kernel's time: helped ."),
        ((2.0, 1.0, 0.5, 1.0), "takes 2.00 × the solo kernel's time: harmed ."),
        ((2.0, 1.0, 1.0, 1.0), "takes 1.00 × the solo kernel's time: neither helped nor harmed ."),
        ((2.0, 1.0, Outcome.CRASH, 1.0), "failed where the solo kernel passed: harmed ."),
        ((2.0, Outcome.CRASH, 1.0, 1.0), "passed where the solo kernel failed: helped ."),
        ((2.0, Outcome.OOM, Outcome.CRASH, 1.0), "Neither the solo nor the conditioned"),
        ((2.0, 1.0, None, 1.0), "Skipped: the source wrote no skill"),
        ((2.0, None, None, None), "Not resolved yet"),
    ],
)
def test_the_ratio_is_said_in_words(
    client: Client, results: tuple[Result, ...], sentence: str
) -> None:
    replicate(*results)
    assert sentence in text_of(client, ADDRESS).replace("&#x27;", "'")


def test_all_panes_hold_their_texts(client: Client) -> None:
    trials = replicate()
    texts = {
        Arm.SOLO_CUTEDSL: "source_kernel = 1\n",
        Arm.SOLO_TIRX: "solo_kernel = 2\n",
        Arm.CUTEDSL_TO_TIRX_SKILL: "conditioned_kernel = 3\n",
    }
    for arm, text in texts.items():
        Trial.objects.filter(pk=trials[arm].pk).update(kernel=Artefact.objects.keep(text))
    html = html_of(client, ADDRESS)
    for anchor, word in (
        ("source", "source_kernel"),
        ("skill", "What solo_cutedsl showed"),
        ("conditioned", "conditioned_kernel"),
        ("solo", "solo_kernel"),
    ):
        start = html.index(f'id="{anchor}"')
        assert word in html[start : html.index("</article>", start)]


def test_every_line_number_is_a_link_to_its_line(client: Client) -> None:
    replicate()
    html = html_of(client, ADDRESS)
    for anchor in ("source", "skill", "conditioned", "solo"):
        assert f'id="{anchor}-L2"' in html
        assert f'href="#{anchor}-L2"' in html


def test_solo_and_conditioned_kernels_are_compared_line_by_line(client: Client) -> None:
    trials = replicate()
    for arm, lanes in ((Arm.SOLO_TIRX, 1), (Arm.CUTEDSL_TO_TIRX_SKILL, 8)):
        kernel = Artefact.objects.keep(f"import torch\nlanes = {lanes}\n")
        Trial.objects.filter(pk=trials[arm].pk).update(kernel=kernel)
    html = html_of(client, ADDRESS)
    assert "1 line removed, 1 added." in text_of(client, ADDRESS)
    assert "lanes = <mark>1</mark>" in html
    assert "lanes = <mark>8</mark>" in html
    assert 'href="#solo-L2"' in html


def test_the_grader_command_reproduces_each_verdict(client: Client) -> None:
    replicate()
    html = html_of(client, ADDRESS)
    for dsl, name in (
        ("cutedsl", "p02_r1_solo_cutedsl"),
        ("tirx", "p02_r1_solo_tirx"),
        ("tirx", "p02_r1_cutedsl2tirx_skill"),
    ):
        command = f"python -m runner.grader 02_problem {dsl} {name}.py"
        assert f"{command} --device cpu --workload smoke" in html
        assert f'href="/entries/model-a/trials/{name}/kernel.py"' in html


def test_draws_are_drawn_and_standing_is_said(client: Client) -> None:
    replicate()
    html = html_of(client, ADDRESS)
    assert html.count('class="strip"') == 3
    # Source 2.0 is tier 4, solo 1.0 tier 3.
    assert "above the solo baseline" in html


def test_the_reverse_twin_is_linked(client: Client) -> None:
    replicate()
    assert 'href="/entries/model-a/02_problem/tirx2cutedsl/r1/"' in html_of(client, ADDRESS)


def test_what_a_model_wrote_stays_inert_and_its_hidden_characters_show(client: Client) -> None:
    trials = replicate()
    attack = "<script>alert(1)</script> {{ page }} zero\u200bwidth \u202eright\n"
    for arm, trial in trials.items():
        fields = {"kernel": Artefact.objects.keep(f"# {arm} {attack}")}
        if arm.direction is None:
            fields["skill"] = Artefact.objects.keep(attack)
        Trial.objects.filter(pk=trial.pk).update(**fields)
    html = html_of(client, ADDRESS)
    assert "<script>alert" not in html
    assert "\u200b" not in html
    assert "\u202e" not in html
    assert "zero⟦U+200B⟧width ⟦U+202E⟧right" in html
    assert "It holds hidden characters" in html


def test_a_skipped_transfer_says_that_there_is_no_skill(client: Client) -> None:
    replicate(2.0, 1.0, None, 1.0)
    text = text_of(client, ADDRESS)
    assert "The source wrote no skill." in text
    assert "There is nothing to compare until both kernels exist." in text


def test_a_waiting_transfer_says_what_it_waits_for(client: Client) -> None:
    factories.make_replicate(
        factories.make_run(), factories.make_problem(), (None, 1.0, None, None)
    )
    text = text_of(client, ADDRESS)
    assert "Source trial : In the queue: next in line." in text
    assert "Waits for the skill of p02_r1_solo_cutedsl, which is queued." in text


def test_visitors_see_reviews_and_no_form(client: Client) -> None:
    trials = replicate()
    reviewer = factories.make_user("rex", reviewer=True)
    factories.make_review(trials[Arm.conditioned(Direction.CUTEDSL_TO_TIRX)], reviewer)
    html = html_of(client, ADDRESS)
    assert "Clean: it counts" in html
    assert "by rex" in html
    assert "Record the verdict" not in html


def test_the_number_of_queries_is_fixed(client: Client) -> None:
    replicate()
    with CaptureQueriesContext(connection) as queries:
        client.get(ADDRESS)
    assert len(queries) <= 4
