"""What every template, style sheet and script keeps to."""

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.staticfiles import finders
from django.template.loader import get_template

TEMPLATES = sorted(Path(settings.BASE_DIR, "templates").rglob("*.html"))
STATIC = Path(settings.BASE_DIR, "static")
STYLES = sorted(STATIC.rglob("*.css"))


def name_of(path: Path) -> str:
    return path.name


@pytest.mark.parametrize("path", TEMPLATES, ids=name_of)
def test_a_template_parses(path: Path) -> None:
    get_template(path.relative_to(Path(settings.BASE_DIR, "templates")).as_posix())


@pytest.mark.parametrize("path", TEMPLATES, ids=name_of)
def test_a_template_holds_no_inline_code_or_style(path: Path) -> None:
    text = path.read_text()
    assert not re.search(r"\sstyle=|<style|\son[a-z]+=|javascript:", text)
    assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", text))


@pytest.mark.parametrize("path", TEMPLATES, ids=name_of)
def test_a_template_trusts_no_text(path: Path) -> None:
    assert not re.search(r"\|\s*safe|autoescape off|mark_safe", path.read_text())


@pytest.mark.parametrize("path", [*TEMPLATES, *STYLES, *STATIC.rglob("*.js")], ids=name_of)
def test_nothing_is_loaded_from_elsewhere(path: Path) -> None:
    text = re.sub(r'<a [^>]*href="[^"]*"|placeholder="[^"]*"|xmlns="[^"]*"', "", path.read_text())
    assert not re.search(r"https?://|//cdn|@import|url\(", text)


def test_every_static_file_that_a_template_names_exists() -> None:
    names = {
        name
        for path in TEMPLATES
        for name in re.findall(r"{% static '([^']+)' %}", path.read_text())
    }
    assert names
    assert not [name for name in names if finders.find(name) is None]


@pytest.mark.parametrize("path", STYLES, ids=name_of)
def test_a_style_sheet_says_what_it_is_and_shouts_at_nobody(path: Path) -> None:
    text = path.read_text()
    assert text.startswith("/* ")
    assert "!important" not in text


@pytest.mark.parametrize("path", STYLES, ids=name_of)
def test_colours_come_from_the_tokens(path: Path) -> None:
    if path.name != "tokens.css":
        assert not re.search(r"#[0-9a-fA-F]{3,8}\b(?![^{]*\{)|rgb\(|hsl\(", path.read_text())


def _luminance(colour: str) -> float:
    """Relative luminance as WCAG 2.2 defines it."""
    channels = [int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(first: str, second: str) -> float:
    low, high = sorted((_luminance(first), _luminance(second)))
    return (high + 0.05) / (low + 0.05)


def _themes() -> dict[str, dict[str, str]]:
    text = (STATIC / "css" / "tokens.css").read_text()
    light, dark = text.split("@media print")[0].split("@media (prefers-color-scheme: dark)")
    read = {
        name: dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6});", part))
        for name, part in (("light", light), ("dark", dark))
    }
    return {"light": read["light"], "dark": read["light"] | read["dark"]}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(
    ("text", "ground"),
    [
        *((name, ground) for name in ("ink", "muted") for ground in ("paper", "raised", "target")),
        *((name, "paper") for name in ("accent", "help", "harm", "neutral")),
        *(
            (f"code-{name}", "raised")
            for name in ("keyword", "string", "number", "comment", "name")
        ),
        *(("ink", ground) for ground in ("added", "removed", "added-word", "removed-word")),
        *(("code-comment", ground) for ground in ("added", "removed")),
        ("on-accent", "accent"),
    ],
)
def test_text_has_enough_contrast_in_both_themes(theme: str, text: str, ground: str) -> None:
    colours = _themes()[theme]
    assert _contrast(colours[text], colours[ground]) >= 4.5
