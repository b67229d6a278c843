"""A schema in GraphQL's own language gives the same server as an introspection of it."""

from __future__ import annotations

import textwrap

import pytest

from forge.compiler.compile import Compilation, compile_document
from forge.discovery.leads import detect_dialect
from forge.errors import NoUsableOperation
from forge.readers.document import parse_document
from forge.readers.graphql import sdl
from tests.forge.readers.graphql.shop import SDL, compiled

ENDPOINT = "https://shop.example/graphql"


def compile_sdl(text: str) -> Compilation:
    return compile_document(parse_document(text.encode(), "schema.graphql"), base_url=ENDPOINT)


def test_a_schema_gives_the_same_server_as_its_introspection() -> None:
    written, told = compile_sdl(SDL), compiled()
    assert written.problems == ()
    assert written.bundle.tools == told.bundle.tools
    assert written.bundle.source_code == told.bundle.source_code.replace(
        "schema.json", "schema.graphql"
    )


def test_directives_of_servers_extensions_and_other_roots_are_read() -> None:
    text = """
    schema @link(url: "https://specs.example/federation") { query: Root }
    type Root {
      a: Thing @cost(weight: 3)
    }
    extend type Root { b(old: Sort = {by: NAME}): [Thing!]! @deprecated(reason: "c") }
    extend schema { mutation: Change }
    type Change { c(thing: ID!): Thing }
    type Thing @key(fields: "id") { id: ID! }
    input Sort { by: Field! }
    enum Field { NAME SIZE }
    extend enum Field { AGE }
    """
    found = {tool.name: tool for tool in compile_sdl(textwrap.dedent(text)).bundle.tools}
    assert {name: tool.access for name, tool in found.items()} == {
        "a": "read",
        "b": "read",
        "c": "write",
    }
    assert "AGE" in str(found["b"].input_schema)
    assert found["b"].description.startswith("Deprecated.")


def test_a_query_that_is_called_as_what_it_gives_is_a_read_though_its_name_is_a_verb_too() -> None:
    text = """
    type Query {
      post(id: ID!): Post
      postByBlogIdAndSlug(blogId: ID!, slug: String!): Post
      order(number: Int): Order!
      orderLatest: Order
      orderNow(id: ID!): Order
      book(id: ID!, guest: String!): Book
      run(id: ID!): Result
      cancel(id: ID!): Order
    }
    type Post { id: ID! }
    type Order { id: ID! }
    type Book { id: ID! }
    type Result { id: ID! }
    """
    found = {tool.name: tool.access for tool in compile_sdl(textwrap.dedent(text)).bundle.tools}
    assert found == {
        "post": "read",
        "post_by_blog_id_and_slug": "read",
        "order": "read",
        "order_latest": "write",
        "order_now": "write",
        "book": "write",
        "run": "write",
        "cancel": "write",
    }


def test_a_part_of_a_schema_that_only_extends_its_root_is_read() -> None:
    (tool,) = compile_sdl("extend type Query {\n  me: String\n}\n").bundle.tools
    assert tool.name == "me"


def test_a_schema_does_not_say_where_its_api_is_whatever_address_it_came_from() -> None:
    document = parse_document(SDL.encode(), "x", url="https://files.example/graphql")
    with pytest.raises(NoUsableOperation, match="endpoint's URL"):
        compile_document(document)


def test_a_schema_is_found_by_how_it_begins_and_no_page_with_an_example_of_one() -> None:
    assert detect_dialect(SDL.encode()) == "graphql"
    assert detect_dialect(b"# Shop\n\ntype Query {\n  a: Int\n}\n") == "graphql"
    assert detect_dialect(b"Our API:\n\ntype Query {\n  a: Int\n}\n") is None
    assert detect_dialect(b"type: object\nproperties:\n  a: {}\n") is None


@pytest.mark.parametrize("start", ["", "\n", "# The shop.\n", '"""All."""\n'])
def test_a_schema_whose_types_stand_on_a_line_each_is_read(start: str) -> None:
    text = start + "type Query { things(n: Int): [Thing!]! }\ntype Thing { id: ID! }\n"
    made = compile_document(
        parse_document(text.encode(), "s"), base_url="https://a.example/graphql"
    )
    assert [tool.name for tool in made.bundle.tools] == ["things"]


def test_more_words_than_a_schema_may_have_are_refused() -> None:
    with pytest.raises(sdl.SchemaUnreadable, match="tokens"):
        sdl.read_sdl("type Query {" + " " + "a:A " * (sdl.MAX_TOKENS // 3 + 9) + "}")
