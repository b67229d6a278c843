from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import pytest
from graphql import (
    GraphQLSchema,
    build_schema,
    graphql_sync,
    introspection_from_schema,
    parse,
    validate,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from forge.compiler.compile import compile_document
from forge.errors import NoUsableOperation
from forge.readers.document import parse_document
from forge.readers.graphql.reader import INTROSPECTION, build_introspection_url
from forge.readers.graphql.schema import find_schema_object
from sandbox.bundle.model import Bundle, Paging, ToolDefinition, read_bundle, write_bundle
from sandbox.schemas.validator import get_checker
from sandbox.stages.static.stage import prove_static
from sandbox.wire.exchange import WireRequest
from sandbox.wire.graphql import classify_document, extract_document
from sandbox.wire.policy import build_read_policy, build_tool_policy
from tests.forge.readers.graphql.shop import answered, compiled, introspection, schema

ENDPOINT = "https://shop.example/graphql"


def compile_schema(told: GraphQLSchema) -> Bundle:
    return compiled({"data": dict(introspection_from_schema(told))}).bundle


def tools() -> dict[str, ToolDefinition]:
    return {tool.name: tool for tool in compiled().bundle.tools}


def test_each_query_is_a_tool_that_reads_and_each_mutation_one_that_writes() -> None:
    assert {name: tool.access for name, tool in tools().items()} == {
        "user": "read",
        "orders": "read",
        "node": "read",
        "search": "read",
        "version": "read",
        "old": "read",
        "refresh_cache": "write",
        "create_order": "write",
        "user_mutation": "write",
    }


def test_every_document_is_valid_for_the_schema_it_was_made_from() -> None:
    for name, tool in tools().items():
        assert validate(schema(), parse(tool.requests[0].document)) == [], name


def test_arguments_are_the_variables_with_their_types_values_and_nullability() -> None:
    takes = tools()["create_order"].input_schema
    judge = get_checker(takes)
    assert judge.find_problem({"items": [{"sku": "a", "count": 2, "note": None}]}) is None
    assert judge.find_problem({"items": [{"sku": "a", "more": {"sku": "b"}}]}) is None
    for wrong in ({}, {"items": [{"count": 1}]}, {"items": [{"sku": "a", "other": 1}]}):
        assert judge.find_problem(wrong) is not None, wrong
    status = get_checker(tools()["orders"].input_schema)
    assert status.find_problem({"status": ["OPEN"], "first": 3}) is None
    assert status.find_problem({"status": ["LOST"]}) is not None
    assert status.find_problem({"first": 2**31}) is not None


def test_a_list_within_an_answer_keeps_the_arguments_that_page_it_and_no_other() -> None:
    told = build_schema("""
        type Post { id: ID! title(upper: Boolean): String }
        type Posts { nodes: [Post!] total: Int }
        type User { id: ID! name(last: Int): String
          posts(first: Int, after: String, tag: String, order: [String!]): Posts
          drafts(first: Int!): Posts }
        type Query { user(id: ID!, posts_first: Int): User }
    """)
    bundle = compile_schema(told)
    (tool,) = bundle.tools
    document = tool.requests[0].document
    assert validate(told, parse(document)) == []
    assert "posts(first: $posts_first_2, after: $posts_after)" in document
    assert "drafts" not in document
    judge = get_checker(tool.input_schema)
    assert judge.find_problem({"id": "1", "posts_first_2": 5, "posts_after": "c"}) is None
    assert judge.find_problem({"id": "1", "name_last": 2}) is not None
    assert prove_static(bundle).passed


def test_a_connection_within_an_answer_is_asked_for_its_first_items_unless_told_how_many() -> None:
    told = build_schema("""
        type PageInfo { hasNextPage: Boolean! }
        type Tag { name: String! }
        type TagEdge { cursor: String! node: Tag! }
        type Tags { edges: [TagEdge!]! pageInfo: PageInfo! }
        type Post { id: ID! tags(first: Int, after: String, last: Int, before: String): Tags! }
        type Query { post: Post }
    """)
    (tool,) = compile_schema(told).tools
    document = tool.requests[0].document
    asked = []

    def tags(info: Any, **given: Any) -> dict[str, Any]:
        asked.append(given)
        return {"edges": [], "pageInfo": {"hasNextPage": False}}

    for variables in ({}, {"tags_first": 3}):
        root = {"post": {"id": "1", "tags": tags}}
        said = graphql_sync(told, document, root_value=root, variable_values=variables)
        assert said.errors is None
    assert asked == [{"first": 10}, {"first": 3}]
    assert "Default: 10." in str(tool.input_schema["properties"]["tags_first"])


def test_the_items_of_a_connection_are_answered_before_what_is_said_of_the_page() -> None:
    told = build_schema("""
        type PageInfo { hasNextPage: Boolean! }
        type Post { id: ID! }
        type Posts { pageInfo: PageInfo! nodes: [Post!]! }
        type Query { posts: Posts }
    """)
    (tool,) = compile_schema(told).tools
    root = {"posts": {"nodes": [{"id": "1"}], "pageInfo": {"hasNextPage": False}}}
    said = graphql_sync(told, tool.requests[0].document, root_value=root)
    assert said.data is not None
    assert list(said.data["posts"]) == ["nodes", "pageInfo"]


def test_a_list_is_not_asked_for_where_only_places_in_it_would_be_told() -> None:
    told = build_schema("""
        type PageInfo { hasNextPage: Boolean! }
        type Leaf { name: String! }
        type LeafEdge { cursor: String! node: Leaf! }
        type Leaves { edges: [LeafEdge!]! pageInfo: PageInfo! }
        type Twig { name: String! leaves(first: Int): Leaves! }
        type Branch { name: String! twig: Twig! }
        type Tree { name: String! branch: Branch! }
        type Query { tree: Tree! }
    """)
    (tool,) = compile_schema(told).tools
    document = tool.requests[0].document
    assert validate(told, parse(document)) == []
    assert "twig" in document
    assert "leaves" not in document


def test_the_edges_of_a_connection_lead_as_deep_as_its_nodes_do() -> None:
    told = build_schema("""
        type Leaf { name: String! }
        type Leaves { rows: [Leaf!]! }
        type Twig { name: String! leaves: Leaves! }
        type TwigEdge { cursor: String! node: Twig! }
        type Twigs { edges: [TwigEdge!]! }
        type Query { twigs: Twigs! }
    """)
    (tool,) = compile_schema(told).tools
    document = tool.requests[0].document
    twig = {"name": "a", "leaves": {"rows": [{"name": "b"}]}}
    root = {"twigs": {"edges": [{"cursor": "1", "node": twig}]}}
    assert graphql_sync(told, document, root_value=root).data == root


def test_what_requires_a_file_is_left_out_and_told_and_an_optional_file_is_no_argument() -> None:
    told = build_schema("""
        scalar Upload
        type Query { version: String }
        type Mutation { attach(id: ID!, file: Upload!): Boolean
          note(text: String!, files: [Upload!]): Boolean }
    """)
    made = compiled({"data": dict(introspection_from_schema(told))})
    assert [tool.name for tool in made.bundle.tools] == ["version", "note"]
    note = made.bundle.get_tool("note")
    assert set(note.input_schema["properties"]) == {"text"}
    assert validate(told, parse(note.requests[0].document)) == []
    (problem,) = made.problems
    assert "Upload" in problem.reason
    assert problem.pointer.endswith("/attach")


@pytest.mark.parametrize("path", ["/", "/graphql/", "/query"])
def test_calls_go_to_the_very_address_that_told_the_schema(path: str) -> None:
    url = f"https://shop.example{path}"
    document = parse_document(json.dumps(introspection()).encode(), "schema", url=url)
    bundle = compile_document(document).bundle
    policy = build_tool_policy(bundle, "version")
    body = json.dumps({"query": bundle.get_tool("version").requests[0].document}).encode()
    headers = (("content-type", "application/json"),)
    assert policy.find_rule(WireRequest("POST", url, headers, body))


def test_a_field_that_is_looked_up_by_an_argument_is_not_asked_for_without_it() -> None:
    told = build_schema("""
        type Post { id: ID! title(locale: String): String valueByKey(key: String): String
          version_by_tag(tag: String): Post sortBy(order: Int): String }
        type Query { postById(id: ID): Post }
    """)
    bundle = compile_schema(told)
    document = bundle.get_tool("post_by_id").requests[0].document
    assert validate(told, parse(document)) == []
    assert "title" in document
    assert "sortBy" in document
    assert "valueByKey" not in document
    assert "version_by_tag" not in document


def test_a_query_that_is_called_as_a_member_of_the_union_that_it_gives_is_a_read() -> None:
    told = build_schema("""
        type Book { id: ID! title: String } type NotFound { message: String }
        union Found = Book | NotFound
        type Query { book(id: ID!): Found cancel(id: ID!): Found }
    """)
    bundle = compile_schema(told)
    assert {tool.name: tool.access for tool in bundle.tools} == {"book": "read", "cancel": "write"}


@pytest.mark.parametrize("named", ["Book", "BookNode", "BookType"])
def test_a_query_that_is_called_as_its_type_is_a_read_also_where_it_is_named_by_its_class(
    named: str,
) -> None:
    told = build_schema(f"""
        type {named} {{ id: ID! title: String }}
        type Query {{ book(id: ID!): {named} cancel(id: ID!): {named} }}
    """)
    bundle = compile_schema(told)
    access = {tool.name: tool.access for tool in bundle.tools}
    assert access == {"book": "read", "cancel": "write"}


def test_what_an_answer_may_be_has_its_objects_and_lists_whichever_it_is() -> None:
    told = build_schema("""
        type Step { key: String }
        type Run { id: ID! steps(first: Int): [Step!]! status: String }
        type Runs { results: [Run!]! }
        type Launched { run: Run! }
        type Refused { message: String! run: String causes: [Refused!]! }
        union Listed = Runs | Refused
        union Started = Launched | Refused
        interface Asset { key: String! owner: Listed }
        type Table implements Asset { key: String! owner: Listed rows: [Run!] }
        type Query { runs: Listed asset: Asset }
        type Mutation { launch: Started! }
    """)
    bundle = compile_schema(told)
    for tool in bundle.tools:
        assert validate(told, parse(tool.requests[0].document)) == [], tool.name
    assert prove_static(bundle).passed
    run = {"id": "7", "status": "open", "steps": [{"key": "a"}]}
    values = {
        "runs": {"__typename": "Runs", "results": [run]},
        "asset": {"__typename": "Table", "key": "k", "owner": None, "rows": [run]},
        "launch": {"__typename": "Launched", "run": run},
    }
    for name, value in values.items():
        tool = bundle.get_tool(name)
        document = tool.requests[0].document
        said = graphql_sync(told, document, root_value={name: value}).formatted
        assert said == {"data": {name: value}}
        assert get_checker(tool.output_schema).find_problem({"status": 200, "body": said}) is None


def test_names_that_begin_with_an_underscore_are_names() -> None:
    told = build_schema("""
        input IntFilter { _eq: Int _and: [IntFilter!] }
        type Count { count: Int! }
        type Query { _ordersMeta(_where: IntFilter): Count }
    """)
    bundle = compile_schema(told)
    (tool,) = bundle.tools
    assert tool.name == "orders_meta"
    assert validate(told, parse(tool.requests[0].document)) == []
    nested = {"_where": {"_and": [{"_eq": 3}]}}
    assert get_checker(tool.input_schema).find_problem(nested) is None


def test_an_engines_own_answer_keeps_to_the_output_schema() -> None:
    order: dict[str, Any] = {
        "id": "7",
        "status": "OPEN",
        "at": "2026-01-01T00:00:00Z",
        "items": [],
        "buyer": None,
    }
    page = {
        "nodes": [order | {"buyer": {"id": "1", "name": "Ann"}}],
        "pageInfo": {"hasNextPage": 0},
    }
    root = {"user": {"id": "1", "name": "Ann", "age": None, "orders": {**page, "totalCount": 1}}}
    tool = tools()["user"]
    said = answered(tool.requests[0].document, {"id": "1"}, root)
    assert "errors" not in said
    assert get_checker(tool.output_schema).find_problem({"status": 200, "body": said}) is None
    wrong = json.loads(json.dumps(said).replace('"totalCount": 1', '"totalCount": "one"'))
    assert get_checker(tool.output_schema).find_problem({"status": 200, "body": wrong}) is not None


def test_the_bundle_passes_the_static_stage_and_is_the_same_read_again(tmp_path: Any) -> None:
    bundle = compiled().bundle
    assert prove_static(bundle).findings == ()
    write_bundle(bundle, tmp_path)
    assert read_bundle(tmp_path) == bundle


def _post(body: str) -> WireRequest:
    headers = (("content-type", "application/json"),)
    return WireRequest("POST", ENDPOINT, headers, body.encode())


def test_a_read_session_sends_the_documents_of_its_reads_and_no_other() -> None:
    bundle = compiled().bundle
    reads, mutation = (
        build_read_policy(bundle),
        bundle.get_tool("create_order").requests[0].document,
    )
    query = bundle.get_tool("user").requests[0].document
    assert reads.find_rule(_post(json.dumps({"query": query})))
    for body in (
        json.dumps({"query": mutation}),
        json.dumps({"query": query + " " + mutation}),
        json.dumps({"query": query, "operationName": "user"}),
        json.dumps([{"query": query}, {"query": mutation}]),
        f'{{"query": {json.dumps(query)}, "query": {json.dumps(mutation)}}}',
        f"query={query}",
        "",
    ):
        assert reads.find_rule(_post(body)) is None, body
    writes = build_tool_policy(bundle, "create_order")
    assert writes.find_rule(_post(json.dumps({"query": mutation})))
    assert writes.find_rule(_post(json.dumps({"query": query}))) is None


@pytest.mark.parametrize(
    ("document", "kind"),
    [
        ("query a { b }", "query"),
        ("mutation a($x: Int = 1) { b(x: $x) { c } }", "mutation"),
        ("query a { b } mutation c { d }", None),
        ("{ b }", None),
        ("subscription a { b }", None),
        ('query a { b(x: "}") } mutation c { d }', None),
        ("query a { b } # mutation", None),
        ("query a { b", None),
        ("fragment f on T { a } query a { b }", None),
    ],
)
def test_only_a_document_of_one_plain_operation_counts_as_what_it_says(
    document: str, kind: str | None
) -> None:
    assert classify_document(document) == kind


def test_a_tool_whose_document_is_a_mutation_is_refused_as_a_read() -> None:
    bundle = compiled().bundle
    forged = tuple(ToolDefinition(**{**vars(tool), "access": "read"}) for tool in bundle.tools)
    changed = replace(bundle, tools=forged)
    rules = {finding.rule for finding in prove_static(changed).findings}
    assert {"understated-access", "unsafe-read"} <= rules


def test_where_the_api_is_has_to_be_said_where_the_document_does_not() -> None:
    with pytest.raises(NoUsableOperation):
        compiled(base_url="")


def test_an_endpoint_without_a_path_is_taken_to_be_at_graphql() -> None:
    (url,) = {tool.requests[0].url for tool in compiled(base_url="https://a.example").bundle.tools}
    assert url == "https://a.example/graphql"


def test_only_what_looks_like_an_endpoint_is_asked_for_its_schema() -> None:
    assert build_introspection_url("https://a.example/api/graphql").startswith(
        "https://a.example/api/graphql?query=%7B__schema"
    )
    assert build_introspection_url("https://a.example/docs") == ""
    assert validate(schema(), parse(INTROSPECTION)) == []


def test_what_cannot_be_read_is_located_and_the_rest_compiles() -> None:
    told = introspection()
    types = told["data"]["__schema"]["types"]
    at = next(at for at, type_ in enumerate(types) if type_["name"] == "Query")
    types[at]["fields"][0]["name"] = 'user") { drop } #'
    made = compiled(told)
    assert [problem.pointer for problem in made.problems] == [f"/__schema/types/{at}/fields/0"]
    assert "orders" in {tool.name for tool in made.bundle.tools}


@settings(max_examples=40)
@given(data=st.data())
def test_a_damaged_schema_gives_a_sound_bundle_or_a_located_refusal(data: st.DataObject) -> None:
    told: Any = copy.deepcopy(introspection())
    junk: st.SearchStrategy[Any] = st.sampled_from(
        [None, 7, "x{y}", '"""', [], {}, {"kind": "LIST"}, "__x"]
    )
    for _ in range(data.draw(st.integers(1, 6))):
        node: Any = told
        while isinstance(node, dict | list) and node:
            keys = list(node) if isinstance(node, dict) else range(len(node))
            key = data.draw(st.sampled_from(list(keys)))
            if data.draw(st.booleans()) or not isinstance(node[key], dict | list):
                node[key] = data.draw(junk)
                break
            node = node[key]
    if find_schema_object(told) is None:
        return
    try:
        bundle = compiled(told).bundle
    except NoUsableOperation:
        return
    assert prove_static(bundle).findings == ()


@pytest.mark.parametrize(("key", "junk"), [("kind", []), ("enumValues", 7), ("possibleTypes", "x")])
def test_a_type_of_another_shape_is_left_out_or_emptied(key: str, junk: Any) -> None:
    told: Any = copy.deepcopy(introspection())
    types = told["data"]["__schema"]["types"]
    at = next(at for at, one in enumerate(types) if one["kind"] == "SCALAR")
    types[at][key] = junk
    assert "orders" in {tool.name for tool in compiled(told).bundle.tools}


def test_a_schema_of_many_types_in_one_circle_stays_small() -> None:
    fields = "\n".join(f"f{n}: T{n}" for n in range(200))
    types = "\n".join(f"type T{n} {{ id: ID! {fields} }}" for n in range(200))
    big = build_schema(f"type Query {{ start: T0 }}\n{types}")
    made = compiled({"data": dict(introspection_from_schema(big))})
    assert len(made.bundle.source_code) < 20_000


def test_a_body_that_is_no_request_carries_no_document() -> None:
    assert extract_document(b"\xff") is None
    assert extract_document(b"[" * 100_000) is None
    assert extract_document(b'{"query": 7}') is None


def paging(query: str, types: str) -> Paging | None:
    sdl = f"type Query {{ {query} }} type Thing {{ id: ID! name: String }} {types}"
    made = compile_document(parse_document(sdl.encode(), "s.graphql"), base_url=ENDPOINT)
    (tool,) = made.bundle.tools
    return tool.paging


EDGES = "type Edge { cursor: String! node: Thing }"
INFO = "type Info { hasNextPage: Boolean! endCursor: String }"


@pytest.mark.parametrize(
    ("query", "types", "expected"),
    [
        (
            "things(first: Int, after: String): Things!",
            f"type Things {{ edges: [Edge] pageInfo: Info! }} {EDGES} {INFO}",
            Paging(
                "cursor",
                "/data/things/edges",
                "after",
                "/data/things/pageInfo/endCursor",
                more="/data/things/pageInfo/hasNextPage",
            ),
        ),
        (
            "listThings(limit: Int, nextToken: String): Things",
            "type Things { items: [Thing]! nextToken: String }",
            Paging("cursor", "/data/listThings/items", "nextToken", "/data/listThings/nextToken"),
        ),
        (
            "things(skip: Int, take: Int): [Thing!]!",
            "",
            Paging("offset", "/data/things", "skip"),
        ),
        (
            "things(page: Int): Things",
            "type Info { pages: Int next: String } type Things { info: Info results: [Thing] }",
            Paging("page", "/data/things/results", "page", first=1),
        ),
        ("things(limit: Int): [Thing!]!", "", None),
        ("thing(page: Int): Thing", "", None),
    ],
)
def test_the_pages_of_a_query_are_found(query: str, types: str, expected: Paging | None) -> None:
    assert paging(query, types) == expected


def test_a_mutation_is_never_asked_page_by_page() -> None:
    sdl = "type Query { a: Int } type Mutation { drop(skip: Int, take: Int): [String!]! }"
    made = compile_document(parse_document(sdl.encode(), "s.graphql"), base_url=ENDPOINT)
    assert [tool.paging for tool in made.bundle.tools] == [None, None]
