"""The small programs that take rights away one after the other, each becoming the next."""

from collections.abc import Mapping, Sequence

_OUT_OF_MEMORY_FIRST = ("choom", "--adjust", "1000", "--")
_NO_CAPABILITIES = ("--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all")


def drop_rights(uid: int | None, *, die_with_parent: bool = False) -> list[str]:
    """Return the start of a command that gives up the user and all capabilities.

    Args:
        uid: the user and group to become; None keeps an ordinary user, who has none to give up.
        die_with_parent: have the kernel kill the command when the starting thread ends.
    """
    command = ["setpriv", "--no-new-privs"]
    if uid is not None:
        command += [f"--reuid={uid}", f"--regid={uid}", "--clear-groups", *_NO_CAPABILITIES]
    if die_with_parent:
        command += ["--pdeathsig=KILL"]
    return [*command, "--"]


def limit(rlimits: Mapping[str, int], *, cores: Sequence[int] | None) -> list[str]:
    """Return the start of a command that lives under `rlimits`, on `cores` alone if any are named.

    It also offers itself first should the host run out of memory.
    """
    command = [*_OUT_OF_MEMORY_FIRST, "prlimit"]
    command += [f"--{name}={value}" for name, value in rlimits.items()]
    command += ["--"]
    if cores is not None:
        command += ["taskset", "--cpu-list", ",".join(map(str, cores))]
    return command


def enter(directory: str, variables: Mapping[str, str]) -> list[str]:
    """Return the start of a command that runs in `directory` and knows `variables` alone.

    It stands last: a caller's PATH or LD_PRELOAD may name what an earlier command left in its
    folder, and must not choose the programs that take the rights away.
    """
    given = [f"{name}={value}" for name, value in variables.items()]
    return ["env", "--ignore-environment", f"--chdir={directory}", f"PWD={directory}", *given]
