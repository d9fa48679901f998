"""What the runner knows of the two DSLs: which versions stand here, and how to write in them."""

from pathlib import Path

from runner.protocol import Dsl

_FOLDER = Path(__file__).parent


def cheatsheet(dsl: Dsl) -> str:
    """Return the notes for a DSL, in Markdown; every Python block in them is a file that runs."""
    return (_FOLDER / f"cheatsheet_{dsl}.md").read_text(encoding="utf-8")
