"""A user of its own for each sandbox that root starts."""

import contextlib
import os
import socket
from pathlib import Path

# Above the users that systems hand out to people, below those of dynamic services.
FIRST_UID = 60_001
N_SLOTS = 400


class Slot:
    """One uid, held from `take` to `release`, or to the end of this process.

    No two sandboxes of a host share a uid, so neither can signal the other nor use up its share of
    processes. The claim is a bound abstract socket: the kernel drops it with the process.
    """

    def __init__(self, uid: int, claim: socket.socket) -> None:
        self.uid = uid
        self._claim = claim

    @classmethod
    def take(cls) -> "Slot | None":
        """Claim a free uid; None for an ordinary user, who cannot become another.

        Raises:
            RuntimeError: all are taken.
        """
        if os.geteuid() != 0:
            return None
        # What an earlier sandbox left to the system's reaper still counts as that user's.
        busy = _users_with_processes()
        for uid in range(FIRST_UID, FIRST_UID + N_SLOTS):
            if uid in busy:
                continue
            claim = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                claim.bind(f"\0metakernelbench-sandbox-{uid}")
            except OSError:
                claim.close()
                continue
            return cls(uid, claim)
        raise RuntimeError(f"all {N_SLOTS} sandbox users are in use; end some sandboxes first")

    def release(self) -> None:
        """Give the uid back; safe to repeat."""
        self._claim.close()


def _users_with_processes() -> set[int]:
    """Return the uids of all the host's processes, ended ones that nobody has reaped included."""
    uids = set()
    for entry in os.scandir("/proc"):
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                uids.add(entry.stat().st_uid)
    return uids


def hand_over(folder: Path, *, uid: int, writable: bool) -> None:
    """Let `uid` use a folder that root made: own all of it to write, or pass its door to read.

    Files of a folder that is only read keep their owner, so must be readable by everyone.
    """
    if not writable:
        if folder.stat().st_mode & 0o005 != 0o005:
            os.chown(folder, uid, -1)
        return
    os.chown(folder, uid, uid)
    for parent, folders, files in os.walk(folder, followlinks=False):
        for name in (*folders, *files):
            # A link planted by an earlier command must not give away what it points to.
            os.chown(Path(parent, name), uid, uid, follow_symlinks=False)
