"""The bar of helped, neutral and harmed shares."""

from dataclasses import dataclass

WIDTH = 120
HEIGHT = 10
GAP = 1


@dataclass(frozen=True)
class Segment:
    """One part of the bar, in SVG units."""

    kind: str
    x: float
    width: float


def segments(*, helped: float, neutral: float, harmed: float) -> tuple[Segment, ...]:
    """Return the parts that are not empty, from helped on the left to harmed on the right.

    Args:
        helped: share of 1; likewise the others. They need not sum to exactly 1.
    """
    total = helped + neutral + harmed
    parts = [("help", helped), ("neutral", neutral), ("harm", harmed)]
    shown = [(kind, share / total) for kind, share in parts if share > 0] if total > 0 else []
    room = WIDTH - GAP * max(0, len(shown) - 1)
    found, x = [], 0.0
    for kind, share in shown:
        found.append(Segment(kind, round(x, 1), round(share * room, 1)))
        x += share * room + GAP
    return tuple(found)
