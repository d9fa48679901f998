"""The system calls that no sandboxed command may make, as a classic BPF program."""

import errno
import platform
import struct

# name: (x86_64, aarch64). Debugging others, kernel interfaces with a history of escapes, mounts and
# namespaces, clocks, and System V memory, which would outlive every process that counts for it.
_DENIED = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "delete_module": (176, 106),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "move_pages": (279, 239),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "shmget": (29, 194),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
}
_CLONE = (56, 220)
_CLONE3 = (435, 435)
# Every CLONE_NEW* flag that clone(2) takes: no namespace may be made inside.
_NEW_NAMESPACE = 0x7E02_0000

_ARCHITECTURES = {"x86_64": (0, 0xC000_003E), "aarch64": (1, 0xC000_00B7)}
_X32_BIT = 0x4000_0000

_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO, _KILL_PROCESS = 0x7FFF_0000, 0x0005_0000, 0x8000_0000
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_ARGUMENT_AT = 0, 4, 16


def program(machine: str | None = None) -> bytes:
    """Return the filter as struct sock_filter[] for this machine, or for the one named.

    Denied calls fail with EPERM. clone3 fails with ENOSYS, whereupon the C library uses clone:
    its flags lie in memory, where no filter can read them.

    Raises:
        NotImplementedError: a machine whose call numbers are not in the table.
    """
    machine = machine or platform.machine()
    if machine not in _ARCHITECTURES:
        raise NotImplementedError(
            f"no seccomp table for {machine!r}; known: {', '.join(_ARCHITECTURES)}"
        )
    column, architecture = _ARCHITECTURES[machine]
    denied = sorted(numbers[column] for numbers in _DENIED.values())
    # The last five instructions: look at clone's flags, allow, EPERM, ENOSYS.
    tail = [
        _step(_LOAD, value=_FIRST_ARGUMENT_AT),
        _step(_JUMP_ANY_BIT, value=_NEW_NAMESPACE, if_true=1),
        _step(_RETURN, value=_ALLOW),
        _step(_RETURN, value=_ERRNO | errno.EPERM),
        _step(_RETURN, value=_ERRNO | errno.ENOSYS),
    ]
    tests = [(_JUMP_EQUAL, number, 3) for number in denied]
    tests += [(_JUMP_EQUAL, _CLONE3[column], 4), (_JUMP_EQUAL, _CLONE[column], 0)]
    if machine == "x86_64":
        tests.insert(0, (_JUMP_AT_LEAST, _X32_BIT, 3))
    head = [
        _step(_LOAD, value=_ARCHITECTURE_AT),
        _step(_JUMP_EQUAL, value=architecture, if_true=1),
        _step(_RETURN, value=_KILL_PROCESS),
        _step(_LOAD, value=_NUMBER_AT),
    ]
    # A jump counts from the next instruction; after the last test stands "allow", then the tail.
    body = [
        _step(code, value=value, if_true=len(tests) - place + target)
        for place, (code, value, target) in enumerate(tests)
    ]
    return b"".join([*head, *body, _step(_RETURN, value=_ALLOW), *tail])


def _step(code: int, *, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)
