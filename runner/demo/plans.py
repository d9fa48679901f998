"""The solo plans: which strategy the scripted model tries first on a problem in a DSL, and why."""

from dataclasses import dataclass

from runner.protocol import Dsl

EAGER_FIRST = "eager already does the heavy part well, so only the last step is the DSL's"


@dataclass(frozen=True)
class SoloPlan:
    """An order of strategies with its reason.

    `silence` is why the model hands on no skill from here; empty where it hands one on.
    """

    order: tuple[str, ...]
    reason: str
    silence: str = ""


_DEFAULT = SoloPlan(("mixed", "fused", "tuned"), EAGER_FIRST)

_PLANS: dict[tuple[int, Dsl], SoloPlan] = {}


def solo_plan(number: int, dsl: Dsl) -> SoloPlan:
    """Return the plan for a problem in a DSL; one that nobody thought about gets the default."""
    return _PLANS.get((number, dsl), _DEFAULT)
