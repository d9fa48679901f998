"""Where and with what a grading ran: versions, processor, card; kept with every verdict."""

import os
import platform
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

_CARD_FACTS = "name,driver_version,clocks.sm,clocks.mem,temperature.gpu,power.draw,persistence_mode"
_CARD_LIMIT_SEC = 10.0


def host() -> dict[str, Any]:
    """Return what this machine is: processor, cores that may be used, kernel, load."""
    return {
        "machine": platform.machine(),
        "kernel": platform.release(),
        "cpu_model": _cpu_model(),
        "n_cores": len(os.sched_getaffinity(0)),
        "load_average": os.getloadavg()[0],
    }


def card() -> dict[str, str] | None:
    """Return the first GPU's name, driver, clocks, temperature and power; None if unknown."""
    command = ["nvidia-smi", f"--query-gpu={_CARD_FACTS}", "--format=csv,noheader,nounits"]
    with suppress(OSError, subprocess.SubprocessError):
        told = subprocess.run(
            command, capture_output=True, text=True, timeout=_CARD_LIMIT_SEC, check=True
        )
        values = told.stdout.splitlines()[0].split(", ")
        return dict(zip(_CARD_FACTS.split(","), values, strict=False))
    return None


def _cpu_model() -> str | None:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return None
