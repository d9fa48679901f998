"""The versions of torch and both DSLs that stand here, found without importing any of them."""

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from runner.protocol import Dsl


@dataclass(frozen=True)
class Versions:
    """Installed versions; None where a package is absent."""

    torch: str | None
    cutedsl: str | None
    tirx: str | None
    tvm_ffi: str | None

    def of(self, dsl: Dsl) -> str | None:
        """Return the version of one DSL."""
        return {Dsl.CUTEDSL: self.cutedsl, Dsl.TIRX: self.tirx}[dsl]


def installed() -> Versions:
    """Read the versions from the packages' metadata."""
    return Versions(
        torch=version_of("torch"),
        cutedsl=version_of("nvidia-cutlass-dsl"),
        tirx=version_of("apache-tvm"),
        tvm_ffi=version_of("apache-tvm-ffi"),
    )


def version_of(package: str) -> str | None:
    """Return the version of an installed distribution, or None."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None
