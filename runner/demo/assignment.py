"""Read the assignment out of a conversation's first message: problem, DSL, conditions, skill."""

import re
from dataclasses import dataclass
from typing import Self

from runner.demo.conversation import Conversation, Role
from runner.protocol import Dsl

_SKILL = re.compile(r"<skill\b[^>\n]*>\n?(.*)</skill>", re.DOTALL)
_SLUG = re.compile(r"(\d{2})_\w+")


@dataclass(frozen=True)
class Assignment:
    """What the instruction asks for. Device and workload are None when it does not say."""

    slug: str
    dsl: Dsl
    device: str | None
    workload: str | None
    skill: str | None

    @property
    def number(self) -> int:
        """The problem's number: the slug starts with it."""
        return int(self.slug[:2])

    @classmethod
    def find(cls, conversation: Conversation) -> Self | None:
        """Return the assignment, or None when no message poses a problem in a known DSL.

        Lines inside the skill block are the skill's and assign nothing.
        """
        for turn in conversation.turns:
            if turn.role not in (Role.SYSTEM, Role.USER):
                continue
            skill = _SKILL.search(turn.text)
            told = _SKILL.sub("", turn.text)
            slug, dsl = _line(told, "Problem"), _line(told, "DSL")
            if slug and _SLUG.fullmatch(slug) and dsl in set(Dsl):
                return cls(
                    slug=slug,
                    dsl=Dsl(dsl),
                    device=_line(told, "Device"),
                    workload=_line(told, "Workload"),
                    skill=skill[1].strip() if skill else None,
                )
        return None


def _line(text: str, name: str) -> str | None:
    """Return the first word after `name:`, free of Markdown marks; None when there is none."""
    found = re.search(rf"^[\s*>-]*{name}:[\s*`]*([\w.-]+)", text, re.MULTILINE)
    return found[1] if found else None
