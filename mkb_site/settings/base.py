"""What holds in every place the site runs; the other settings state only differences."""

from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from mkb_site import env

BASE_DIR = Path(__file__).resolve().parents[2]
DATA_DIR = Path(env.text("MKB_DATA", str(BASE_DIR / "var"))).resolve()

SECRET_KEY = env.text("MKB_SECRET_KEY", "")
DEBUG = False
ALLOWED_HOSTS = env.listed("MKB_ALLOWED_HOSTS", "127.0.0.1,localhost,[::1]")

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "leaderboard",
    "mkb_site",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "leaderboard.views.headers.content_security_policy",
]

ROOT_URLCONF = "mkb_site.urls"
WSGI_APPLICATION = "mkb_site.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "builtins": ["leaderboard.templatetags.units"],
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]


def database(url: str) -> dict[str, Any]:
    """Return Django's settings for `sqlite:///PATH` or `postgresql://USER:PASSWORD@HOST:PORT/NAME`.

    Raises:
        BadSettingError: any other kind of address.
    """
    parts = urlsplit(url)
    if parts.scheme == "sqlite":
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": parts.path,
            "OPTIONS": {
                # Writers queue at BEGIN instead of failing half-way through a transaction.
                "transaction_mode": "IMMEDIATE",
                "timeout": 20,
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
            },
        }
    if parts.scheme == "postgresql":
        return {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": parts.path.lstrip("/"),
            "USER": unquote(parts.username or ""),
            "PASSWORD": unquote(parts.password or ""),
            "HOST": parts.hostname or "",
            "PORT": parts.port or "",
            "CONN_MAX_AGE": 60,
            "CONN_HEALTH_CHECKS": True,
        }
    raise env.BadSettingError(
        f"MKB_DATABASE={url!r} is neither sqlite:///PATH nor postgresql://USER:PASSWORD@HOST/NAME"
    )


DATABASES = {"default": database(env.text("MKB_DATABASE", f"sqlite://{DATA_DIR}/site.sqlite3"))}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "vendor"
LOGOUT_REDIRECT_URL = "board"

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_I18N = False
USE_TZ = True

STATIC_URL = "static/"
# Only production collects them; elsewhere they are served from where they lie.
STATIC_ROOT: Path | None = None
STATICFILES_DIRS = [BASE_DIR / "static"]

X_FRAME_OPTIONS = "DENY"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_SAMESITE = "Lax"
DATA_UPLOAD_MAX_MEMORY_SIZE = 1_000_000

BROKER_URL = env.text("MKB_BROKER", "filesystem://")
BROKER_DIR = DATA_DIR / "broker"

# The public half; only agent hosts hold the private one.
SEAL_PUBLIC_KEY = env.text("MKB_SEAL_PUBLIC_KEY", "")
DEFAULT_DEVICE = env.text("MKB_DEVICE", "cpu")
# Devices that a gpu worker of this site serves; runs on others are refused.
DEVICES = env.listed("MKB_DEVICES", DEFAULT_DEVICE)
# An attempt that is not heard of for LEASE_SEC is lost; one that no worker took for
# DISPATCH_SEC is sent again, and its old order expires.
LEASE_SEC = env.number("MKB_LEASE_SEC", 90)
DISPATCH_SEC = env.number("MKB_DISPATCH_SEC", 600)
MAX_RUNNING = env.number("MKB_MAX_RUNNING", 3)
COMMIT = env.text("MKB_COMMIT", "")

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"plain": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "plain"}},
    "root": {"handlers": ["console"], "level": "INFO"},
}
