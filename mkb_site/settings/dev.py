"""The embedded default: one machine, SQLite, the filesystem broker; `make run` uses it."""

from mkb_site.settings.base import *  # noqa: F403

SECRET_KEY = env.text("MKB_SECRET_KEY", "only-for-this-machine")  # noqa: F405
