"""Each permission is told with what it allows."""

from __future__ import annotations

import pytest

from sandbox.bundle.permissions import explain_permission


@pytest.mark.parametrize(
    ("permission", "said"),
    [
        ("network:api.example.com", "requests to api.example.com"),
        ("env:TOKEN", "the vault holds as TOKEN"),
        ("fs:/srv/in:ro", "to read the file /srv/in"),
        ("fs:/srv/in:rw", "to read and change the file /srv/in"),
        ("call:harbour.list_berths", "run the tool harbour.list_berths"),
        ("tls:*:443", "any public host on port 443"),
        ("dns:*", "can carry data away"),
        ("tcp:whois.example.org:43", "send bytes to whois.example.org:43"),
        ("clock", "the present time"),
        ("random", "at random"),
    ],
)
def test_a_permission_is_told_with_what_it_allows(permission: str, said: str) -> None:
    assert said in explain_permission(permission)


def test_what_is_no_permission_allows_nothing() -> None:
    assert explain_permission("everything") == ""
