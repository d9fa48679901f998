"""Sets the Celery app up in every process that runs Django, so that orders find their broker."""

from django.apps import AppConfig


class SiteConfig(AppConfig):
    """Holds no tables; only its `ready` matters."""

    name = "mkb_site"

    def ready(self) -> None:
        """Make ours the current Celery app. Imported late, for it reads the settings."""
        from mkb_site import celery  # noqa: F401, PLC0415
