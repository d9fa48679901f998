"""What people may send. Services decide whether it can be; forms pass on why it cannot."""

from collections.abc import Callable
from typing import Any, TypeVar

from django import forms
from django.contrib.auth.forms import UserCreationForm
from django.contrib.auth.models import User
from django.http import HttpRequest, QueryDict

from leaderboard.models import Entry, Problem, Review
from leaderboard.services.refusals import Refusal
from leaderboard.services.reviews import NOTE_LIMIT
from leaderboard.services.runs import MAX_REPLICATES

KEY_LIMIT_CHARS = 4_000

T = TypeVar("T")


def sent(request: HttpRequest) -> QueryDict | None:
    """Return what a form starts from: what was posted, or nothing."""
    return request.POST if request.method == "POST" else None


def taken(form: forms.BaseForm, act: Callable[..., T], *args: object, **more: object) -> T | None:
    """Call a service with what a form holds.

    Returns:
        What the service returns; None when the form is unbound, invalid or refused, and then
        its errors say why.
    """
    if not form.is_valid():
        return None
    try:
        return act(*args, **form.cleaned_data, **more)
    except Refusal as refusal:
        form.add_error(None, str(refusal))
        return None


def status_of(form: forms.BaseForm) -> int:
    """Return the HTTP status of a page that shows the form: 422 when it was not taken."""
    return 422 if form.is_bound else 200


class SignupForm(UserCreationForm):  # type: ignore[type-arg]  # no generic at run time
    """A name and a password, twice."""

    class Meta(UserCreationForm.Meta):
        model = User
        fields = ("username",)


def _key_field(help_text: str, *, required: bool) -> forms.CharField:
    """A key goes in and never comes out: the widget renders no value, even beside an error."""
    return forms.CharField(
        label="API key",
        widget=forms.PasswordInput(render_value=False, attrs={"autocomplete": "off"}),
        required=required,
        max_length=KEY_LIMIT_CHARS,
        help_text=help_text,
    )


class EntryForm(forms.Form):
    """A new entry: a public name, and where the model answers."""

    name = forms.CharField(
        label="Public name", max_length=80, help_text="How the board calls this entry."
    )
    provider = forms.ChoiceField(label="Wire protocol", choices=Entry.Provider.choices)
    # Not a URLField: that one refuses hosts of one word, such as a neighbour in a compose file.
    base_url = forms.CharField(
        label="Base URL",
        max_length=300,
        widget=forms.URLInput(attrs={"placeholder": "https://api.example.com/v1"}),
        help_text="The address that the provider's SDK takes.",
    )
    model_id = forms.CharField(
        label="Model id", max_length=120, help_text="As the endpoint names the model."
    )
    api_key = _key_field(
        "Sealed as it arrives; only agent workers can open it, and no page shows it."
        " Any word will do for an endpoint that needs none.",
        required=True,
    )


class EntryChangeForm(EntryForm):
    """Another name, address, model or key for an entry."""

    api_key = _key_field(
        "Leave it empty to keep the stored key. A new address needs its key again.",
        required=False,
    )

    @staticmethod
    def initial_of(entry: Entry) -> dict[str, str]:
        """Return what the form starts from: everything but the key."""
        names = ("name", "provider", "base_url", "model_id")
        return {name: getattr(entry, name) for name in names}


class RunForm(forms.Form):
    """Which problems to run, and how often."""

    problems = forms.TypedMultipleChoiceField(
        label="Problems", coerce=int, widget=forms.CheckboxSelectMultiple
    )
    n_replicates = forms.IntegerField(
        label="Replicates",
        initial=1,
        min_value=1,
        max_value=MAX_REPLICATES,
        help_text="Independent repetitions of all four trials of each problem.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        rows = Problem.objects.current()
        choices = [(row.number, f"{row.number:02d} {row.title}") for row in rows]
        self.fields["problems"].choices = choices  # type: ignore[attr-defined]


class ReviewForm(forms.Form):
    """A verdict and the reason for it."""

    verdict = forms.ChoiceField(label="Verdict", choices=Review.Verdict.choices)
    note = forms.CharField(
        label="Note",
        max_length=NOTE_LIMIT,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text="What you saw; it is published with your name.",
    )
