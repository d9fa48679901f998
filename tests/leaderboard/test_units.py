"""How numbers are written: sign, precision, unit, and a dash for what is unknown."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.templatetags import units


def plain(text: str) -> str:
    return text.replace(units.SPACE, " ")


@pytest.mark.parametrize(
    ("fraction", "text"), [(0.0, "0.0 %"), (0.167, "16.7 %"), (1.0, "100.0 %"), (3.981, "398.1 %")]
)
def test_a_share_has_one_decimal(fraction: float, text: str) -> None:
    assert plain(units.percent(fraction)) == text


@pytest.mark.parametrize(
    ("fraction", "text"),
    [(0.124, "+12.4 %"), (-0.031, "−3.1 %"), (0.0, "0.0 %"), (-0.0001, "0.0 %"), (1.5, "+150.0 %")],
)
def test_a_change_always_carries_its_sign(fraction: float, text: str) -> None:
    assert plain(units.signed(fraction)) == text


def test_an_interval_stands_in_brackets() -> None:
    assert plain(units.interval(-0.031, 0.204, "signed")) == "[−3.1, +20.4]"
    assert plain(units.interval(0.03, 0.564)) == "[3.0, 56.4]"
    assert units.interval(None, 0.2) == ""


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (1.336, "1.34 ×"),
        (1.0, "1.00 ×"),
        (0.0329, "0.0329 ×"),
        (12.34, "12.3 ×"),
        (240.4, "240 ×"),
        (9.999, "10.0 ×"),
        (12_345.0, "12,345 ×"),
    ],
)
def test_a_ratio_has_three_digits_that_count(ratio: float, text: str) -> None:
    assert plain(units.times(ratio)) == text


@pytest.mark.parametrize(
    ("duration_ms", "text"),
    [
        (0.1184, "118 µs"),
        (0.00512, "5.12 µs"),
        (0.9996, "1.00 ms"),
        (1.184, "1.18 ms"),
        (118.4, "118 ms"),
        (2_400.0, "2.40 s"),
    ],
)
def test_a_kernel_s_time_picks_its_unit(duration_ms: float, text: str) -> None:
    assert plain(units.ms(duration_ms)) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (8.2, "8.2 s"),
        (59.4, "59 s"),
        (59.7, "1 min"),
        (125, "2 min 05 s"),
        (600, "10 min"),
        (3_599.8, "1 h 00 min"),
        (7_260, "2 h 01 min"),
    ],
)
def test_a_stretch_of_wall_clock_is_said_as_people_say_it(seconds: float, text: str) -> None:
    assert plain(units.duration(seconds)) == text


def test_a_count_groups_its_thousands() -> None:
    assert units.count(12_345) == "12,345"


def test_a_time_of_day_is_in_utc() -> None:
    at = dt.datetime(2026, 11, 30, 23, 55, 4, tzinfo=dt.timezone(dt.timedelta(hours=1)))
    assert plain(units.moment(at)) == (
        '<time datetime="2026-11-30T22:55:04+00:00">2026-11-30 22:55 UTC</time>'
    )


@pytest.mark.parametrize(
    "write",
    [
        units.percent,
        units.signed,
        units.times,
        units.ms,
        units.duration,
        units.count,
        units.score,
        units.moment,
    ],
)
def test_unknown_is_a_dash_that_says_why(write: object) -> None:
    html = write(None, 'no "verdict" yet')  # type: ignore[operator]
    assert ">–<" in html
    assert 'title="no &quot;verdict&quot; yet"' in html
    assert "tabindex" in html


@given(st.floats(1e-6, 1e6))
def test_a_ratio_is_read_back_to_half_a_percent(ratio: float) -> None:
    written = plain(units.times(ratio)).removesuffix(" ×").replace(",", "")
    assert float(written) == pytest.approx(ratio, rel=6e-3, abs=5e-7)
