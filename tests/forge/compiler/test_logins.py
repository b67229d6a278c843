"""What a description says of log-ins: endpoints from its flows, scopes from its operations."""

from __future__ import annotations

import json
from typing import Any

import pytest

from forge.compiler.compile import compile_document
from forge.readers.document import parse_document
from sandbox.bundle.apispec import from_json, to_json
from sandbox.bundle.credential import TokenEndpoint, parse_credential

URL = "https://api.test/openapi.json"
PAGE, TOKENS = "https://login.test/authorize", "https://login.test/token"


def compile_api(scheme: dict[str, Any], **operations: list[str]) -> Any:
    """A bundle whose operations need these scopes of the one scheme."""
    document = {
        "openapi": "3.2.0",
        "info": {"title": "Api", "version": "1"},
        "servers": [{"url": "https://api.test"}],
        "components": {"securitySchemes": {"login": scheme}},
        "paths": {
            f"/{name}": {
                "get": {
                    "operationId": name,
                    "security": [{"login": scopes}],
                    "responses": {"200": {"description": "ok"}},
                }
            }
            for name, scopes in operations.items()
        },
    }
    return compile_document(parse_document(json.dumps(document).encode(), "a.json", url=URL)).bundle


def read_tokens(scheme: dict[str, Any], **operations: list[str]) -> TokenEndpoint:
    (credential,) = compile_api(scheme, **(operations or {"one": []})).credentials
    assert credential.tokens is not None
    return credential.tokens  # type: ignore[no-any-return]


def flows(**given: dict[str, Any]) -> dict[str, Any]:
    return {"type": "oauth2", "flows": given}


@pytest.mark.parametrize(
    ("scheme", "page", "device", "tokens"),
    [
        (
            flows(authorizationCode={"authorizationUrl": PAGE, "tokenUrl": TOKENS}),
            PAGE,
            "",
            ("", TOKENS),
        ),
        (flows(implicit={"authorizationUrl": PAGE}), PAGE, "", ("", "")),
        (
            flows(
                deviceAuthorization={
                    "deviceAuthorizationUrl": "https://login.test/device",
                    "tokenUrl": TOKENS,
                }
            ),
            "",
            "https://login.test/device",
            ("", TOKENS),
        ),
        (
            flows(
                clientCredentials={"tokenUrl": "https://other.test/token"},
                authorizationCode={"authorizationUrl": "/authorize", "tokenUrl": TOKENS},
            ),
            "https://api.test/authorize",
            "",
            (TOKENS, "https://other.test/token"),
        ),
    ],
    ids=["code", "implicit", "device", "two endpoints"],
)
def test_the_endpoints_of_a_log_in_are_read_from_the_flows(
    scheme: dict[str, Any], page: str, device: str, tokens: tuple[str, str]
) -> None:
    found = read_tokens(scheme)
    assert (found.authorization_url, found.device_url) == (page, device)
    assert (found.login_url, found.url) == tokens


def test_the_scopes_are_those_that_the_operations_need_together() -> None:
    scheme = flows(authorizationCode={"authorizationUrl": PAGE, "tokenUrl": TOKENS})
    given = {"one": ["read", "mail"], "two": ["read", "write"], "three": ["not one word"]}
    assert read_tokens(scheme, **given).needed_scopes == ("mail", "read", "write")


def test_what_is_known_of_a_log_in_lasts_in_the_bundles_files() -> None:
    scheme = flows(authorizationCode={"authorizationUrl": PAGE, "tokenUrl": TOKENS})
    bundle = compile_api(scheme, one=["read"])
    assert from_json(json.loads(json.dumps(to_json(bundle.spec)))) == bundle.spec
    (credential,) = bundle.credentials
    written = {"name": "login", "kind": "oauth2", "tokens": dict(vars(credential.tokens))}
    plain = {k: list(v) if isinstance(v, tuple) else v for k, v in written["tokens"].items()}
    assert parse_credential({**written, "tokens": plain}) == credential
