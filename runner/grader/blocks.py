"""Memory that parent and child both see: a sealed memfd on the CPU, a CUDA IPC block on a GPU."""

import ctypes
import fcntl
import mmap
import os
from functools import cache
from typing import Any, Protocol

import torch

# cudaIpcGetMemHandle shares whole pages of this size: a smaller allocation would show the
# child its neighbours.
DEVICE_PAGE_BYTES = 2 << 20

_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
_LAZY_PEER_ACCESS = 1


class Block(Protocol):
    """Bytes in shared memory.

    `tensor` is uint8, [n_bytes]; `ticket` and `fd` are what the other side attaches by (a CUDA
    block has no descriptor, a memfd needs no ticket).
    """

    tensor: torch.Tensor
    ticket: str

    @property
    def fd(self) -> int | None:
        """The descriptor to send along."""

    def close(self) -> None:
        """Give the memory back; no tensor of it may be used afterwards."""


def create(n_bytes: int, *, device: str) -> Block:
    """Allocate a block that no earlier grading used, all zero on the CPU and 0xFF on a GPU."""
    return _HostBlock.create(n_bytes) if device == "cpu" else _DeviceBlock.create(n_bytes)


def attach(n_bytes: int, *, device: str, ticket: str, fd: int | None) -> Block:
    """Map the other side's block; on the CPU the descriptor is used up."""
    if device == "cpu":
        if fd is None:
            raise ValueError("a block on the CPU travels with a file descriptor; none came")
        return _HostBlock(fd, n_bytes)
    return _DeviceBlock.attach(bytes.fromhex(ticket), n_bytes)


def as_tensor(block: Block, *, dtype: torch.dtype, shape: list[int]) -> torch.Tensor:
    """See a block as a contiguous tensor, without a copy."""
    return block.tensor.view(dtype).view(shape)


class _HostBlock:
    """A memfd, mapped for reading and writing.

    Sealed against a change of its size: a child that cut it short would kill the parent with
    SIGBUS. Its pages are present from the start, so that no page fault falls into a timing.
    """

    ticket = ""

    def __init__(self, fd: int, n_bytes: int) -> None:
        self.fd: int | None = fd
        if n_bytes == 0:
            self.tensor = torch.empty(0, dtype=torch.uint8)
            return
        # Python keeps its own duplicate of the descriptor, until the last tensor is gone.
        pages = mmap.mmap(fd, n_bytes, flags=mmap.MAP_SHARED | mmap.MAP_POPULATE)
        self.tensor = torch.frombuffer(pages, dtype=torch.uint8)

    @classmethod
    def create(cls, n_bytes: int) -> "_HostBlock":
        fd = os.memfd_create("block", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        # Not an empty file: the receiving side's checks are then the same for every tensor.
        os.ftruncate(fd, max(n_bytes, 1))
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _SEALS)
        return cls(fd, n_bytes)

    def close(self) -> None:
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None
        self.tensor = torch.empty(0, dtype=torch.uint8)


class _IpcHandle(ctypes.Structure):
    _fields_ = (("reserved", ctypes.c_byte * 64),)


class _DeviceMemory:
    """What torch wraps without a copy."""

    def __init__(self, address: int, n_bytes: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (n_bytes,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 3,
        }


class _DeviceBlock:
    """An allocation of its own (never torch's pool, whose segments hold other tensors)."""

    fd: int | None = None

    def __init__(self, address: int, n_bytes: int, *, ticket: str, owned: bool) -> None:
        self._address = address
        self._owned = owned
        self.ticket = ticket
        if n_bytes == 0:
            self.tensor = torch.empty(0, dtype=torch.uint8, device="cuda")
        else:
            self.tensor = torch.as_tensor(_DeviceMemory(address, n_bytes), device="cuda")

    @classmethod
    def create(cls, n_bytes: int) -> "_DeviceBlock":
        n_pages = max(1, -(-n_bytes // DEVICE_PAGE_BYTES))
        address = ctypes.c_uint64()
        _call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(n_pages * DEVICE_PAGE_BYTES))
        handle = _IpcHandle()
        _call("cuIpcGetMemHandle", ctypes.byref(handle), address)
        block = cls(address.value, n_bytes, ticket=bytes(handle).hex(), owned=True)
        block.tensor.fill_(0xFF)
        return block

    @classmethod
    def attach(cls, handle: bytes, n_bytes: int) -> "_DeviceBlock":
        address = ctypes.c_uint64()
        _call(
            "cuIpcOpenMemHandle_v2",
            ctypes.byref(address),
            _IpcHandle.from_buffer_copy(handle),
            ctypes.c_uint(_LAZY_PEER_ACCESS),
        )
        return cls(address.value, n_bytes, ticket="", owned=False)

    def close(self) -> None:
        torch.cuda.synchronize()
        self.tensor = torch.empty(0, dtype=torch.uint8, device="cuda")
        address, self._address = self._address, 0
        if address:
            name = "cuMemFree_v2" if self._owned else "cuIpcCloseMemHandle"
            _call(name, ctypes.c_uint64(address))


@cache
def _driver() -> Any:
    """Load CUDA's driver, with torch's context current on this thread."""
    torch.zeros(1, device="cuda")
    return ctypes.CDLL("libcuda.so.1")


def _call(name: str, *arguments: Any) -> None:
    """Call one function of the driver.

    Raises:
        MemoryError: the device has no room.
        RuntimeError: any other refusal, with its number.
    """
    out_of_memory = 2
    status = getattr(_driver(), name)(*arguments)
    if status == out_of_memory:
        raise MemoryError(f"{name}: the device has no room left")
    if status:
        raise RuntimeError(f"{name} failed with CUDA error {status}")
