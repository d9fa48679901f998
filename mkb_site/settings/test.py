"""Settings of the test suite: a throw-away database, no key stretching, tasks run in place."""

import os
import tempfile

os.environ.setdefault("MKB_DATA", tempfile.mkdtemp(prefix="mkb-test-"))

from mkb_site.settings.base import *  # noqa: F403
from runner import sealing

SECRET_KEY = "tests-only"  # noqa: S105
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
ALLOWED_HOSTS = ["*"]
SEAL_PRIVATE_KEY, SEAL_PUBLIC_KEY = sealing.new_key_pair()
CELERY_EAGER = True
