"""The filesystem broker, made safe for several processes: no letter is seen before it is whole.

Kombu's own opens a letter's file, and writes it a moment later: a reader that comes between finds
nothing and ends with an error. It also hands letters to readers by a move that may be a copy.
"""

import os
import time
import uuid
from contextlib import suppress
from pathlib import Path
from queue import Empty
from typing import Any

from kombu.exceptions import ChannelError
from kombu.transport import filesystem
from kombu.utils.json import dumps, loads


class Channel(filesystem.Channel):
    """Letters are written aside and renamed; renaming them again is how a reader takes one."""

    # Kombu's own parents disagree about the second name.
    def _put(self, queue: str, payload: Any, **_options: Any) -> None:  # type: ignore[override]
        # The time comes first and has a fixed width, so that names sort by age.
        name = f"{time.time_ns():020d}_{uuid.uuid4().hex}.{queue}.msg"
        folder = Path(self.data_folder_out)
        try:
            _write_whole(folder / name, dumps(payload))
        except OSError as error:
            raise ChannelError(f"letter {name} cannot be written to {folder}: {error}") from error

    def _get(self, queue: str, timeout: float | None = None) -> Any:  # noqa: ARG002 - kombu's
        for name in sorted(os.listdir(self.data_folder_in)):
            if name.partition(".")[2] != f"{queue}.msg":
                continue
            taken = Path(self.processed_folder, name)
            with suppress(FileNotFoundError):  # another reader was faster
                Path(self.data_folder_in, name).rename(taken)
                text = taken.read_text(encoding="utf-8")
                taken.unlink()
                return loads(text)
        raise Empty

    def _queue_bind(self, exchange: str, *binding: Any) -> None:
        # Kombu rewrites an existing table under a lock, but makes a new one in two steps.
        table = self._exchange_file(exchange)  # type: ignore[attr-defined]
        if not table.exists():
            with suppress(FileExistsError):
                _write_whole(table, "[]", replace=False)
        super()._queue_bind(exchange, *binding)


class Transport(filesystem.Transport):
    """What `broker_transport` names."""

    Channel = Channel


def _write_whole(path: Path, text: str, *, replace: bool = True) -> None:
    """Write a file that appears under its name with all its text, or not at all.

    Raises:
        FileExistsError: it is there, and `replace` says that it should stay.
    """
    part = path.with_name(f"{path.name}.{uuid.uuid4().hex}.part")
    try:
        part.write_text(text, encoding="utf-8")
        if replace:
            part.replace(path)
        else:
            path.hardlink_to(part)
    finally:
        part.unlink(missing_ok=True)
