"""The protocol's words as types: DSLs, directions, arms, coordinates, outcomes and budgets."""

import re
from dataclasses import dataclass
from enum import StrEnum

BUDGET_SEC = 2_400
SUBMISSION_LIMIT = 10
KERNEL_LIMIT_BYTES = 300_000
SKILL_LIMIT_BYTES = 64_000
GRADING_LIMIT_SEC = 600
MAX_TRIES = 3


class Dsl(StrEnum):
    """A kernel language of the benchmark."""

    CUTEDSL = "cutedsl"
    TIRX = "tirx"

    @property
    def label(self) -> str:
        """The language's name as its authors write it."""
        return {"cutedsl": "CuTe DSL", "tirx": "TIRx"}[self.value]


class Direction(StrEnum):
    """Where a skill comes from and where it goes."""

    CUTEDSL_TO_TIRX = "cutedsl2tirx"
    TIRX_TO_CUTEDSL = "tirx2cutedsl"

    @property
    def source(self) -> Dsl:
        """The DSL in which the skill was learned."""
        return Dsl(self.value.split("2")[0])

    @property
    def target(self) -> Dsl:
        """The DSL in which the skill is used."""
        return Dsl(self.value.split("2")[1])

    @property
    def reverse(self) -> "Direction":
        """The same two DSLs, the other way round."""
        return Direction(f"{self.target}2{self.source}")

    @property
    def label(self) -> str:
        """The direction in words: "CuTe DSL → TIRx"."""
        return f"{self.source.label} → {self.target.label}"


class Arm(StrEnum):
    """The condition of an attempt."""

    SOLO_CUTEDSL = "solo_cutedsl"
    SOLO_TIRX = "solo_tirx"
    CUTEDSL_TO_TIRX_SKILL = "cutedsl2tirx_skill"
    TIRX_TO_CUTEDSL_SKILL = "tirx2cutedsl_skill"

    @classmethod
    def solo(cls, dsl: Dsl) -> "Arm":
        """Return the arm that works in this DSL with no skill."""
        return cls(f"solo_{dsl}")

    @classmethod
    def conditioned(cls, direction: Direction) -> "Arm":
        """Return the arm that receives the skill of this direction."""
        return cls(f"{direction}_skill")

    @property
    def direction(self) -> Direction | None:
        """The skill's direction; None for a solo arm."""
        return None if self.value.startswith("solo_") else Direction(self.value[: -len("_skill")])

    @property
    def dsl(self) -> Dsl:
        """The DSL that the attempt writes its kernel in."""
        return self.direction.target if self.direction else Dsl(self.value[len("solo_") :])

    @property
    def source(self) -> "Arm | None":
        """The arm whose skill this one receives; None for a solo arm."""
        return Arm.solo(self.direction.source) if self.direction else None

    @property
    def baseline(self) -> "Arm | None":
        """The solo arm that this one is compared with; None for a solo arm."""
        return Arm.solo(self.dsl) if self.direction else None

    @property
    def label(self) -> str:
        """The arm in words: "solo in TIRx", "TIRx with the skill from CuTe DSL"."""
        if self.direction is None:
            return f"solo in {self.dsl.label}"
        return f"{self.dsl.label} with the skill from {self.direction.source.label}"


_COORDINATE = re.compile(r"p(\d{2})_r(\d+)_([a-z0-9_]+)")


@dataclass(frozen=True, order=True)
class Coordinate:
    """A trial's address within one entry's results, written p32_r1_solo_cutedsl."""

    problem: int
    replicate: int
    arm: Arm

    def __str__(self) -> str:
        return f"p{self.problem:02d}_r{self.replicate}_{self.arm}"

    @classmethod
    def parse(cls, text: str) -> "Coordinate":
        """Read a coordinate.

        Raises:
            ValueError: the text is no coordinate, or names an arm that does not exist.
        """
        found = _COORDINATE.fullmatch(text)
        if not found or found[3] not in set(Arm):
            arms = ", ".join(Arm)
            raise ValueError(
                f"coordinate {text!r} is not pNN_r<k>_<arm>, with <arm> one of {arms};"
                " write it like p32_r1_solo_cutedsl"
            )
        return cls(int(found[1]), int(found[2]), Arm(found[3]))


class Outcome(StrEnum):
    """What a grading found; the closed list of the protocol."""

    PASSED = "passed"
    REFUSED = "refused"
    IMPORT_ERROR = "import_error"
    COMPILE_ERROR = "compile_error"
    RUNTIME_ERROR = "runtime_error"
    WRONG_STRUCTURE = "wrong_structure"
    WRONG_SHAPE = "wrong_shape"
    WRONG_DTYPE = "wrong_dtype"
    WRONG_VALUES = "wrong_values"
    NON_FINITE = "non_finite"
    MUTATED_INPUT = "mutated_input"
    TIMEOUT = "timeout"
    CRASH = "crash"
    OOM = "oom"
    FORBIDDEN = "forbidden"
    NO_DSL_WORK = "no_dsl_work"
    TAMPERING = "tampering"
    INFRASTRUCTURE = "infrastructure"

    @property
    def counts_as_submission(self) -> bool:
        """Whether feedback with this outcome costs the attempt one of its submissions."""
        return self not in (Outcome.REFUSED, Outcome.INFRASTRUCTURE)


class EndReason(StrEnum):
    """Why an attempt ended."""

    FINISHED = "finished"
    STOPPED_CALLING_TOOLS = "stopped_calling_tools"
    OUT_OF_TIME = "out_of_time"
    OUT_OF_TURNS = "out_of_turns"
    ENDPOINT_REFUSED = "endpoint_refused"
    INFRASTRUCTURE = "infrastructure"
