"""The headers of every answer."""

import pytest
from django.test import Client

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:;"
    " connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)


@pytest.mark.django_db
@pytest.mark.parametrize("address", ["/", "/healthz", "/api/v1/rankings", "/nowhere/", "/vendor/"])
def test_pages_may_load_this_site_s_own_files_alone(client: Client, address: str) -> None:
    response = client.get(address)
    assert response.headers["Content-Security-Policy"] == POLICY
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["X-Frame-Options"] == "DENY"
    assert response.headers["Referrer-Policy"] == "same-origin"
