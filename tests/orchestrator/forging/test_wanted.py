"""The credentials that a new server wants, as a person is asked for them."""

from __future__ import annotations

from orchestrator.forging.contact.wanted import find_wanted_credentials
from sandbox.bundle.credential import Credential
from sandbox.bundle.model import Bundle, Provenance, RequestPattern, ToolDefinition
from sandbox.credentials.source import CredentialSource

OBJECT = {"type": "object"}
BASIC, TOKEN, SIGN = (
    Credential("basic", "basic"),
    Credential("token", "apiKey"),
    Credential("sign", "apiKey", "header", "X-Sign"),
)


def list_wanted(*security: tuple[tuple[str, ...], ...]) -> dict[str, tuple[str, ...]]:
    """What a server wants whose tools have those alternatives, with what does instead."""
    tools = tuple(
        ToolDefinition(
            f"tool{number}",
            "A tool.",
            OBJECT,
            OBJECT,
            "read",
            requests=(RequestPattern("GET", "https://api.test/a"),),
            security=ways,
        )
        for number, ways in enumerate(security)
    )
    declared = (BASIC, TOKEN, SIGN)
    bundle = Bundle(
        name="sample",
        version=1,
        title="Sample",
        base_url="https://api.test",
        source_code="",
        tools=tools,
        provenance=Provenance("test", "0" * 64),
        credentials=declared,
    )
    source = CredentialSource({each.name: each for each in declared})
    return {each.name: each.instead for each in find_wanted_credentials(bundle, source)}


def test_alternatives_of_every_tool_are_told_as_such() -> None:
    assert list_wanted((("basic",), ("token",)), (("token",), ("basic",))) == {
        "basic": ("token",),
        "token": ("basic",),
    }


def test_a_credential_that_one_tool_takes_alone_has_no_alternative() -> None:
    assert list_wanted((("basic",), ("token",)), (("token",),)) == {
        "basic": ("token",),
        "token": (),
    }


def test_credentials_that_go_together_are_no_alternatives_of_each_other() -> None:
    assert list_wanted((("token", "sign"), ("basic",))) == {
        "basic": (),
        "sign": ("basic",),
        "token": ("basic",),
    }
