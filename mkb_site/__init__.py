"""The site: settings, addresses, and the doors of its processes."""

from mkb_site.celery import app as celery_app

__all__ = ["celery_app"]
