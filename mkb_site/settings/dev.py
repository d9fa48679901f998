"""The embedded default: one machine, SQLite, the filesystem broker; `make run` uses it."""

from mkb_site import env
from mkb_site.embedded import keys
from mkb_site.settings.base import *  # noqa: F403

_keys = keys.ensure(DATA_DIR / "keys")  # noqa: F405

SECRET_KEY = env.text("MKB_SECRET_KEY", _keys.django_secret)
SEAL_PUBLIC_KEY = env.text("MKB_SEAL_PUBLIC_KEY", _keys.seal_public)

# Pages are served straight from the checkout, with no collecting step.
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = True
