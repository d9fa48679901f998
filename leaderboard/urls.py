"""Every address of the site."""

urlpatterns: list = []
