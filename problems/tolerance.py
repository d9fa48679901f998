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


@dataclass(frozen=True)
class CodeSteps:
    """Codes of float8_e4m3fn, uint8, against the anchor's: none more than one step off.

    Steps count along the codes in the order of their values. Of the codes written, at most the
    share `limit`, or ALWAYS_ALLOWED where that is more, may differ; the codes of NaN are wrong
    wherever the anchor has another.
    """

    limit: float


@dataclass(frozen=True)
class Relative:
    """Every element within `limit` times the anchor's own magnitude."""

    limit: float


# A few hundred codes cannot show a share of a thousandth; so many differ by chance.
ALWAYS_ALLOWED = 8

Rule = Default | Exact | Frobenius | PerHead | CodeSteps | Relative


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
