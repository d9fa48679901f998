"""How an output is compared with the anchor, where a problem departs from the protocol."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Default:
    """The protocol's rule: largest and root-mean-square error, integers and Booleans exact."""


@dataclass(frozen=True)
class Exact:
    """Every element equal to the reference's, bit for bit."""


@dataclass(frozen=True)
class Frobenius:
    """In place of the protocol's rule: ||actual - anchor|| / ||anchor|| is at most `limit`."""

    limit: float


@dataclass(frozen=True)
class PerHead:
    """The protocol's rule, applied to each index of `axis` by itself."""

    axis: int


Rule = Default | Exact | Frobenius | PerHead


@dataclass(frozen=True)
class Tolerance:
    """A problem's rules, one per output in the order returned."""

    rules: tuple[Rule, ...]

    def rule(self, output: int) -> Rule:
        """Return the rule of output number `output`, counted from 0.

        Raises:
            IndexError: the problem states no rule for such an output.
        """
        if not 0 <= output < len(self.rules):
            raise IndexError(
                f"output {output} has no rule: {len(self.rules)} are stated;"
                " state one for each output of the reference"
            )
        return self.rules[output]
