from __future__ import annotations

from dataclasses import replace

import pytest

from forge.compiler.compile import declare_credentials
from forge.compiler.selection import MAX_FITTING, parse_credential, select_for_task
from forge.errors import CredentialPlaceInvalid, NoOperationChosen
from sandbox.bundle.apispec import SecurityScheme
from sandbox.bundle.credential import Credential, CredentialPlace
from tests.forge.samples import compiled, reading

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


@pytest.mark.parametrize(
    ("tags", "tools"), [(("animals",), ["list_pets"]), (("pets", "own*"), ["add_pet", "get_owner"])]
)
def test_operations_are_chosen_by_tag_or_group(tags: tuple[str, ...], tools: list[str]) -> None:
    made = compiled(PATHS, tags=tags)
    assert [tool.name for tool in made.bundle.tools] == tools


@pytest.mark.parametrize(
    ("task", "tools"),
    [
        ("who owns it: show owners", ["get_owner"]),
        ("Add a pet", ["list_pets", "add_pet"]),
        ("", ["list_pets", "add_pet", "get_owner"]),
    ],
)
def test_operations_are_chosen_by_a_tasks_words(task: str, tools: list[str]) -> None:
    made = compiled(PATHS, task=task)
    assert [tool.name for tool in made.bundle.tools] == tools


def test_the_best_of_many_are_kept_in_the_documents_order() -> None:
    names = [f"thing{n}" for n in range(60)]
    paths = "\n".join(f"/{name}: {{get: {{summary: Get the {name}}}}}" for name in names)
    extra = "\n/zebras/{id}: {get: {operationId: feedZebra}}"
    spec = reading(paths + extra).spec
    assert [o.path for o in select_for_task(spec, "get thing7 to feed zebras", 2).operations] == [
        "/thing7",
        "/zebras/{id}",
    ]
    assert len(select_for_task(spec, "get").operations) == MAX_FITTING


def test_every_tool_has_a_group() -> None:
    paths = """
    /api/v1/pets: {get: {tags: [Animals, Other]}, post: {}}
    /api/v1/pets/{id}/toys: {get: {}}
    /api/v1/owners: {get: {}}
    """
    made = compiled(paths).bundle
    assert [tool.group for tool in made.tools] == ["Animals", "pets", "pets", "owners"]
    listed = made.tools[0].build_listing(made.base_url)
    assert listed["_meta"]["toolwright"]["group"] == "Animals"


def test_choosing_nothing_that_is_there_is_told() -> None:
    with pytest.raises(NoOperationChosen, match="no operation matches zebra"):
        compiled(PATHS, chosen=["zebra"])


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("header:X-Token=@t", SecurityScheme("t", "apiKey", "header", "X-Token", given=True)),
        ("query:api_key=@h.2", SecurityScheme("h.2", "apiKey", "query", "api_key", given=True)),
        ("cookie:sid=@s", SecurityScheme("s", "apiKey", "cookie", "sid", given=True)),
        ("bearer=@house", SecurityScheme("house", "bearer", given=True)),
        ("basic=@house", SecurityScheme("house", "basic", given=True)),
        ("digest=@house", SecurityScheme("house", "digest", given=True)),
        (
            "header:Authorization:token=@house",
            SecurityScheme(
                "house", "apiKey", "header", "Authorization", given=True, prefix="token"
            ),
        ),
    ],
)
def test_a_forgotten_credential_is_given_by_its_place(written: str, meant: SecurityScheme) -> None:
    assert parse_credential(written) == meant


@pytest.mark.parametrize(
    "written",
    [
        *(
            "",
            "X-Token",
            "path:id=@a",
            "header:=@a",
            "header:a b=@a",
            "header:X",
            "bearer",
            "basic=@",
        ),
        *(
            "query:a:token=@a",
            "header:X:to ken=@a",
            "header:X:=@a",
            "header:X:a:b=@a",
            "bearer:x=@a",
        ),
    ],
)
def test_what_is_no_place_is_told(written: str) -> None:
    with pytest.raises(CredentialPlaceInvalid, match="cannot be read"):
        parse_credential(written)


def test_a_word_before_the_secret_is_part_of_what_is_sent() -> None:
    written = "header:Authorization:token=@house"
    made = compiled(PATHS, auth=[parse_credential(written)]).bundle
    place = CredentialPlace("header", "Authorization", "token {secret}")
    assert made.credentials == (Credential("house", "template", places=(place,), given=True),)


@pytest.mark.parametrize(
    "written", ["query:a=s3cr3t", "bearer=s3cr3t", "basic=me:s3cr3t", "header:X=s3cr3t=@a"]
)
def test_a_secret_that_is_given_itself_is_refused_and_not_repeated(written: str) -> None:
    with pytest.raises(CredentialPlaceInvalid, match="names no secret") as raised:
        parse_credential(written)
    assert "s3cr3t" not in str(raised.value)


def test_several_forgotten_credentials_go_together() -> None:
    both = (parse_credential("header:X-App=@app"), parse_credential("query:key=@key"))
    made = compiled(PATHS, auth=both).bundle
    assert made.get_tool("list_pets").security == (("app", "key"),)


def test_a_forgotten_credential_is_remembered_and_its_parameter_is_no_argument() -> None:
    made = compiled(PATHS, KEY, auth=[parse_credential("header:X-Token=@house")]).bundle
    assert Credential("house", "apiKey", "header", "X-Token", given=True) in made.credentials
    assert made.get_tool("list_pets").security == (("house",),)
    assert made.get_tool("add_pet").security == (("key",),)
    assert made.get_tool("get_owner").input_schema["properties"].keys() == {"id"}


def test_a_required_parameter_at_a_credential_s_place_is_sent_beside_the_others() -> None:
    paths = """
    /pets:
      get:
        security: [{key: []}]
        parameters: [{name: app_key, in: query, required: true, schema: {type: string}}]
        responses: {"200": {description: ok}}
    """
    before = compiled(paths, KEY).bundle
    assert "app_key" in before.tools[0].input_schema["properties"]
    for made in (
        compiled(paths, KEY, auth=[parse_credential("query:app_key=@app")]).bundle,
        declare_credentials(before, [parse_credential("query:app_key=@app")]),
    ):
        assert made.tools[0].security == (("key", "app"),)
        assert "app_key" not in made.tools[0].input_schema["properties"]


def test_a_credential_is_declared_for_the_operations_of_a_bundle_that_take_none() -> None:
    before = compiled(PATHS, KEY).bundle
    after = declare_credentials(before, [parse_credential("header:X-Token=@house")])
    assert after.get_tool("list_pets").security == (("house",),)
    assert after.get_tool("add_pet").security == (("key",), ("house",))
    assert after.get_tool("get_owner").input_schema["properties"].keys() == {"id"}
    assert {c.name for c in after.credentials} == {"key", "house"}
    again = declare_credentials(after, [parse_credential("header:X-Token=@house")])
    assert again.compute_digest() == after.compute_digest()


def test_code_that_somebody_wrote_keeps_its_code_when_a_credential_is_declared() -> None:
    before = compiled(PATHS, KEY).bundle
    by_hand = replace(
        before, source_code="# by hand", provenance=replace(before.provenance, author="client")
    )
    after = declare_credentials(by_hand, [parse_credential("bearer=@house")])
    assert after.source_code == "# by hand"
    assert after.get_tool("list_pets").security == (("house",),)
    assert after.spec is not None
    assert {o.security for o in after.spec.operations} == {t.security for t in after.tools}
