from __future__ import annotations

import gc
import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from forge.compiler.compile import compile_document
from forge.errors import DocumentError, NameInvalid
from forge.readers.document import load_document, parse_document
from forge.schemas.walk import list_references
from sandbox.bundle.apispec import from_json, to_json
from sandbox.bundle.model import NAME, Bundle, read_bundle, render_files, write_bundle
from sandbox.wire.exchange import WireRequest
from sandbox.wire.policy import build_read_policy, build_tool_policy
from tests.forge.samples import api, compiled, swagger

SPECS = Path(__file__).parents[4] / "shared" / "specs"


def _real() -> list[Path]:
    """The main files of descriptions that lie beside the repository, the largest left out."""
    mains = [
        i.parent / json.loads(i.read_text())["main"] for i in sorted(SPECS.glob("*/index.json"))
    ]
    return [main for main in mains if main.stat().st_size < 600_000]


def _check(bundle: Bundle) -> None:
    """What holds for every bundle, whatever its document."""
    assert NAME.match(bundle.name)
    compile(bundle.source_code, "server.py", "exec")
    for tool in bundle.tools:
        for schema in (tool.input_schema, tool.output_schema):
            Draft202012Validator.check_schema(schema)
            assert schema["type"] == "object"
            defs = schema.get("$defs", {})
            assert list_references(schema).union(*map(list_references, defs.values())) == set(defs)
    assert bundle.spec is not None
    assert from_json(json.loads(json.dumps(to_json(bundle.spec), allow_nan=False))) == bundle.spec


def test_a_bundle_can_be_written_and_read_back(tmp_path: Path) -> None:
    document = api("/pets/{id}: {get: {operationId: getPet}}")
    bundle = compile_document(document).bundle
    write_bundle(bundle, tmp_path)
    again = read_bundle(tmp_path)
    assert again.compute_digest() == bundle.compute_digest()
    assert bundle.name == "pets"
    assert bundle.provenance.author == "compiler"
    assert bundle.provenance.source_digest == hashlib.sha256(document.content).hexdigest()
    assert bundle.spec is not None
    assert bundle.spec.get_operation("getPet").path == "/pets/{id}"


def test_a_document_compiles_to_the_same_bytes_again() -> None:
    text = "/a: {get: {operationId: x}, post: {operationId: x}}\n/b: {get: {}}"
    assert compiled(text).bundle.compute_digest() == compiled(text).bundle.compute_digest()


def test_compiling_leaves_no_cycles_to_the_garbage_collector() -> None:
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Owner"}}}}
    answer = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Pets"}}}}
    operation = {"requestBody": body, "responses": {"200": {"description": "", **answer}}}
    word = {"type": "string", "enum": [f"{'w' * 60}{at}" for at in range(40)]}
    # More than an output schema may take, so that its inner parts are cut.
    pet = {"type": "object", "properties": {f"p{at}": word for at in range(9)}}
    owner = {"allOf": [{"$ref": "#/components/schemas/Name"}, {"required": ["name"]}]}
    name = {"type": "object", "properties": {"name": {"type": "string", "readOnly": False}}}
    pets = {"type": "array", "items": {"$ref": "#/components/schemas/Pet"}}
    root = {
        "openapi": "3.0.3",
        "servers": [{"url": "https://api.example.com"}],
        "paths": {"/pets": {"post": operation}},
        "components": {"schemas": {"Name": name, "Owner": owner, "Pet": pet, "Pets": pets}},
    }
    document = parse_document(json.dumps(root).encode(), "api.json")
    gc.collect()
    gc.disable()
    try:
        made = compile_document(document)
        assert gc.collect() == 0
    finally:
        gc.enable()
    assert [tool.name for tool in made.bundle.tools] == ["post_pets"]
    assert "too large" in str(made.problems)


def test_a_policy_lets_through_what_a_tool_asks_for() -> None:
    bundle = compiled("/a b/{id}: {get: {}, delete: {operationId: drop}}").bundle
    url = "https://api.example.com/v1/a%20b/7"
    assert build_read_policy(bundle).find_rule(WireRequest("GET", url))
    assert build_read_policy(bundle).find_rule(WireRequest("DELETE", url)) is None
    assert build_tool_policy(bundle, "drop").find_rule(WireRequest("DELETE", url))


def test_half_of_a_document_broken_leaves_the_other_half() -> None:
    paths = "\n".join(
        f"/p{n}: {{post: {{requestBody: {{$ref: '#/components/requestBodies/B{n % 2}'}}}}}}"
        for n in range(10)
    )
    rest = "components: {requestBodies: {B0: {content: {application/json: {}}}}}"
    made = compiled(paths, rest)
    assert [tool.name for tool in made.bundle.tools] == [f"post_p{n}" for n in (0, 2, 4, 6, 8)]
    assert {problem.pointer for problem in made.problems} == {
        f"/paths/~1p{n}/post/requestBody" for n in (1, 3, 5, 7, 9)
    }
    _check(made.bundle)


def test_a_given_name_and_base_url_win() -> None:
    made = compile_document(
        swagger("/a: {get: {}}"), name="mine", base_url="http://localhost:8081/api/v1"
    ).bundle
    assert (made.name, made.base_url) == ("mine", "http://localhost:8081/api/v1")
    assert made.permissions == ("network:localhost:8081",)


@pytest.mark.parametrize("name", ["", "Mine", "1a", "a-b", "a" * 41, "../x"])
def test_a_name_that_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(NameInvalid, match="lower-case"):
        compiled("/a: {get: {}}", name=name)


_WORDS = st.sampled_from(
    "openapi swagger 3.0.0 3.1.0 2.0 paths /a /{b} get post parameters name in query path "
    "body schema "
    "formData $ref #/paths #/components/schemas/A components schemas A requestBody content type "
    "application/json responses 200 security servers url https://h host required object "
    "array items "
    "properties allOf oneOf info title definitions description operationId tags".split()
)
_TREES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 300) | _WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS, inner, max_size=5),
    max_leaves=40,
)


@settings(deadline=None, max_examples=200)
@given(_TREES, _TREES, _TREES, st.sampled_from(["openapi", "swagger"]))
def test_any_tree_compiles_or_is_refused(
    item: object, shared: object, rest: object, kind: str
) -> None:
    root = {
        **(rest if isinstance(rest, dict) else {}),
        kind: "2.0" if kind == "swagger" else "3.1.0",
        "paths": {"/a": item, "/b/{c}": {"post": item}, "/d": {"get": {}}},
        "components": {"schemas": {"A": shared}, "parameters": shared},
    }
    try:
        made = compile_document(parse_document(json.dumps(root).encode(), "x"), base_url="http://h")
    except DocumentError:
        return
    _check(made.bundle)


if _real():

    @pytest.mark.parametrize("main", _real(), ids=lambda path: str(path.relative_to(SPECS)))
    def test_a_real_description_compiles_whole(main: Path) -> None:
        document = load_document(main)
        made = compile_document(document, base_url="http://127.0.0.1:9/base")
        listed = sum(
            method in item
            for path, item in document.root["paths"].items()
            if isinstance(item, dict) and path.startswith("/")
            for method in ("get", "put", "post", "delete", "options", "head", "patch", "trace")
        )
        assert len(made.bundle.tools) >= listed
        assert len(render_files(made.bundle)) == 4
        compile(made.bundle.source_code, "server.py", "exec")
