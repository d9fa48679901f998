"""`make run`: start everything here, run the demo once, say what happens, stop on Ctrl-C."""

import os
import signal
import sys
import time
from types import FrameType

from mkb_site.embedded import place as places
from mkb_site.embedded.place import CannotStartError, Place

LOOK_EVERY_SEC = 1.0


def main() -> int:
    """Run until interrupted; return the exit status."""
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        chosen = places.choose(os.environ.get("PORT", "8000"), os.environ.get("MKB_DATA", "var"))
        with places.held(chosen):
            return _serve(chosen)
    except CannotStartError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0


def _serve(chosen: Place) -> int:
    """Bring the site up and watch it until Ctrl-C or until one of its programs dies."""
    os.environ["MKB_DATA"] = str(chosen.folder)
    os.environ["DJANGO_SETTINGS_MODULE"] = "mkb_site.settings.dev"
    # Only now: these read the settings, and the settings read the two lines above.
    import django  # noqa: PLC0415

    django.setup()
    from mkb_site.embedded import preparation, programs, progress  # noqa: PLC0415

    preparation.prepare(chosen)
    group = programs.start_all(chosen, demo_port=places.free_port(chosen.port))
    try:
        programs.wait_until_served(chosen, group)
        preparation.start_runs(group.environment["MKB_DEMO_URL"])
        print(f"\nThe board is at {chosen.url} — press Ctrl-C to stop everything.\n")
        teller = progress.Teller(chosen.url)
        while (name := group.dead()) is None:
            teller.tell()
            time.sleep(LOOK_EVERY_SEC)
        print(f"The {name} stopped by itself; its log is {group.log_of(name)}.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopping ...")
        return 0
    finally:
        # A second, impatient Ctrl-C must not leave half of it running.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        group.stop()
        preparation.hand_back()
        print("Everything is stopped. `make run` goes on where this left off.")


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """Treat a polite kill like Ctrl-C."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
