"""The only place that turns a number into text: sign, precision and unit.

A no-break space stands between number and unit, and a real minus sign before what is negative.
None comes out as a dash that says why, for unknown is never 0.
"""

import datetime as dt
import math

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()

SPACE = "\u00a0"
MINUS = "\u2212"
NOT_KNOWN = "not known"


@register.simple_tag
def unknown(reason: str = NOT_KNOWN) -> SafeString:
    """Return the dash of an unknown number; its reason shows on hover and on focus."""
    return format_html('<span class="unknown" tabindex="0" title="{}">–</span>', reason)


@register.filter
def percent(fraction: float | None, reason: str = NOT_KNOWN) -> str:
    """Write a share of 1: 0.167 → "16.7 %"."""
    if fraction is None:
        return unknown(reason)
    return f"{100 * fraction:.1f}{SPACE}%"


@register.filter
def signed(fraction: float | None, reason: str = NOT_KNOWN) -> str:
    """Write a change as a share of 1, always with its sign: 0.124 → "+12.4 %"."""
    if fraction is None:
        return unknown(reason)
    return f"{_signed(fraction)}{SPACE}%"


@register.filter
def percent_whole(fraction: float) -> str:
    """Write a round share for an axis: 0.2 → "20 %"."""
    return f"{100 * fraction:.0f}{SPACE}%"


@register.filter
def signed_whole(fraction: float) -> str:
    """Write a round change for an axis: -0.5 → "−50 %"."""
    sign = MINUS if fraction < 0 else "+" if fraction > 0 else ""
    return f"{sign}{abs(100 * fraction):.0f}{SPACE}%"


@register.simple_tag
def interval(low: float | None, high: float | None, style: str = "percent") -> str:
    """Write a 95 % interval of shares: "[−3.1, +20.4]", or without signs: "[3.0, 56.4]"."""
    if low is None or high is None:
        return ""
    write = _signed if style == "signed" else _plain
    return f"[{write(low)},{SPACE}{write(high)}]"


@register.filter
def times(ratio: float | None, reason: str = NOT_KNOWN) -> str:
    """Write a ratio: 1.336 → "1.34 ×"; three digits that count, never an exponent."""
    if ratio is None:
        return unknown(reason)
    return f"{_three_digits(ratio)}{SPACE}×"


@register.filter
def ms(duration_ms: float | None, reason: str = NOT_KNOWN) -> str:
    """Write a kernel's time: 0.1184 → "118 µs", 1.184 → "1.18 ms", 2400 → "2.40 s"."""
    if duration_ms is None:
        return unknown(reason)
    if duration_ms < 0.9995:
        return f"{_three_digits(duration_ms * 1e3)}{SPACE}µs"
    if duration_ms < 999.5:
        return f"{_three_digits(duration_ms)}{SPACE}ms"
    return f"{_three_digits(duration_ms / 1e3)}{SPACE}s"


@register.filter
def duration(seconds: float | None, reason: str = NOT_KNOWN) -> str:
    """Write a stretch of wall clock: 8.2 → "8.2 s", 125 → "2 min 05 s", 600 → "10 min"."""
    if seconds is None:
        return unknown(reason)
    whole = round(seconds)
    if 0 < seconds < 9.95 and seconds != whole:
        return f"{seconds:.1f}{SPACE}s"
    if whole < 60:
        return f"{whole}{SPACE}s"
    if whole < 3_600:
        rest = f"{SPACE}{whole % 60:02d}{SPACE}s" if whole % 60 else ""
        return f"{whole // 60}{SPACE}min{rest}"
    return f"{whole // 3_600}{SPACE}h{SPACE}{whole % 3_600 // 60:02d}{SPACE}min"


@register.filter
def count(number: int | None, reason: str = NOT_KNOWN) -> str:
    """Write how many: 12345 → "12,345"."""
    return unknown(reason) if number is None else f"{number:,}"


@register.filter
def score(value: float | None, reason: str = NOT_KNOWN) -> str:
    """Write a score between 0 and 100: "41.2"."""
    return unknown(reason) if value is None else f"{value:.1f}"


@register.filter
def moment(at: dt.datetime | None, reason: str = NOT_KNOWN) -> SafeString:
    """Write a time of day in UTC: "2026-11-30 22:55 UTC"."""
    if at is None:
        return unknown(reason)
    utc = at.astimezone(dt.UTC)
    return format_html(
        '<time datetime="{}">{} UTC</time>',
        utc.isoformat(timespec="seconds"),
        utc.strftime("%Y-%m-%d %H:%M").replace(" ", SPACE),
    )


def _plain(fraction: float) -> str:
    return f"{100 * fraction:.1f}"


def _signed(fraction: float) -> str:
    text = f"{abs(100 * fraction):.1f}"
    if float(text) == 0:
        return text
    return f"{MINUS if fraction < 0 else '+'}{text}"


def _three_digits(value: float) -> str:
    """Return three significant digits in plain notation; whole numbers above 100."""
    if value <= 0 or not math.isfinite(value):
        return f"{value:.2f}"
    # Rounded first: 9.999 is 10.0, which has one decimal and not two.
    magnitude = math.floor(math.log10(float(f"{value:.3g}")))
    return f"{value:,.{min(6, max(0, 2 - magnitude))}f}"
