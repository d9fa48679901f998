"""Production: every secret comes from outside, and only HTTPS is spoken."""

from mkb_site import env
from mkb_site.settings.base import *  # noqa: F403

SECRET_KEY = env.text("MKB_SECRET_KEY")
SEAL_PUBLIC_KEY = env.text("MKB_SEAL_PUBLIC_KEY")
DATABASES = {"default": database(env.text("MKB_DATABASE"))}  # noqa: F405
BROKER_URL = env.text("MKB_BROKER")

SESSION_COOKIE_SECURE = True
SESSION_COOKIE_NAME = "__Host-session"
CSRF_COOKIE_SECURE = True
CSRF_COOKIE_NAME = "__Host-csrf"
SECURE_SSL_REDIRECT = True
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_HSTS_SECONDS = 31_536_000
SECURE_HSTS_INCLUDE_SUBDOMAINS = True
SECURE_HSTS_PRELOAD = True
CSRF_TRUSTED_ORIGINS = env.listed("MKB_ORIGINS")

STATIC_ROOT = DATA_DIR / "static"  # noqa: F405
