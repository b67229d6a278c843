from __future__ import annotations

import pytest

from forge.errors import CredentialPlaceInvalid, NoOperationChosen
from forge.selection import credential
from sandbox.apispec import SecurityScheme
from sandbox.bundle import Credential
from tests.forge.samples import compiled

PATHS = """
/pets:
  get: {operationId: listPets, tags: [Animals]}
  post: {operationId: addPet, security: [{key: []}]}
/owners/{id}:
  get: {operationId: getOwner, parameters: [{in: header, name: x-token, schema: {type: string}}]}
"""
KEY = """
components: {securitySchemes: {key: {type: apiKey, in: header, name: X-Key}}}
"""


@pytest.mark.parametrize(
    ("patterns", "tools"),
    [
        ((), ["list_pets", "add_pet", "get_owner"]),
        (("listpets",), ["list_pets"]),
        (("/pets",), ["list_pets", "add_pet"]),
        (("get /*",), ["list_pets", "get_owner"]),
        (("animals", "*owner*"), ["list_pets", "get_owner"]),
    ],
)
def test_operations_are_chosen_by_id_path_method_and_tag(
    patterns: tuple[str, ...], tools: list[str]
) -> None:
    made = compiled(PATHS, chosen=patterns)
    assert [tool.name for tool in made.bundle.tools] == tools


def test_choosing_nothing_that_is_there_is_told() -> None:
    with pytest.raises(NoOperationChosen, match="no operation matches zebra"):
        compiled(PATHS, chosen=["zebra"])


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("header:X-Token", SecurityScheme("x_token", "apiKey", "header", "X-Token")),
        ("query:api_key=@house", SecurityScheme("house", "apiKey", "query", "api_key")),
        ("cookie:sid", SecurityScheme("sid", "apiKey", "cookie", "sid")),
        ("bearer=@house", SecurityScheme("house", "bearer")),
        ("basic", SecurityScheme("basic", "basic")),
    ],
)
def test_a_forgotten_credential_is_given_by_its_place(written: str, meant: SecurityScheme) -> None:
    assert credential(written) == meant


@pytest.mark.parametrize(
    "written", ["", "X-Token", "path:id", "header:", "header:a b", "query:a=b"]
)
def test_what_is_no_place_is_told(written: str) -> None:
    with pytest.raises(CredentialPlaceInvalid):
        credential(written)


def test_a_forgotten_credential_is_remembered_and_its_parameter_is_no_argument() -> None:
    made = compiled(PATHS, KEY, auth=credential("header:X-Token=@house")).bundle
    assert Credential("house", "apiKey", "header", "X-Token") in made.credentials
    assert made.tool("list_pets").security == (("house",),)
    assert made.tool("add_pet").security == (("key",),)
    assert made.tool("get_owner").input_schema["properties"].keys() == {"id"}
