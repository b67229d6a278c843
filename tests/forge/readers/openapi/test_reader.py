from __future__ import annotations

from typing import Any

import pytest

from forge.errors import NotAnApiDescription, NoUsableOperation
from forge.readers.document import parse_document
from forge.readers.openapi.reader import read_openapi
from sandbox.bundle.apispec import Encoding, MediaType, Response, SecurityScheme, from_json, to_json
from tests.forge.samples import BASE, api, document, operation, reading, swagger, swagger_operation


@pytest.mark.parametrize(
    ("written", "dialect"),
    [
        ("openapi: 3.0.3", "openapi 3.0"),
        ("openapi: '3.0'", "openapi 3.0"),
        ("openapi: 3.1.0", "openapi 3.1"),
        ("openapi: 3.2.0", "openapi 3.2"),
        ("swagger: 2.0", "swagger 2.0"),
        ("definitions: {}", "swagger 2.0"),
    ],
)
def test_every_dialect_is_told_by_its_version(written: str, dialect: str) -> None:
    spec = read_openapi(
        document(f"{written}\nhost: h\nservers: [url: 'http://h']\npaths: {{/a: {{get: {{}}}}}}")
    ).spec
    assert (spec.dialect, spec.title) == (dialect, "API")


@pytest.mark.parametrize(
    ("written", "reason"),
    [
        ("- a", "not a mapping"),
        ("swagger: '1.2'", "1.2"),
        ("asyncapi: 2.0.0", "asyncapi"),
        ("$schema: x", r"\$schema"),
        ("just text", "not a mapping"),
    ],
)
def test_what_is_no_api_description_is_refused(written: str, reason: str) -> None:
    with pytest.raises(NotAnApiDescription, match=reason):
        read_openapi(document(written))


def test_a_document_without_a_usable_operation_is_refused_with_its_causes() -> None:
    with pytest.raises(NoUsableOperation, match="/paths/~1a/get"):
        read_openapi(api("/a: {get: [x]}"))
    with pytest.raises(NoUsableOperation, match="lists none"):
        read_openapi(document("openapi: 3.0.0"))


def test_a_bad_operation_is_left_out_and_located_and_the_rest_kept() -> None:
    found = reading(
        """
        /good: {get: {operationId: good}}
        /list: {get: []}
        /{broken: {get: {}}
        /a/../b: {get: {}}
        /body: {post: {requestBody: {$ref: '#/components/requestBodies/None'}}}
        /item: 3
        /gone: {$ref: '#/components/pathItems/None'}
        """
    )
    assert [o.id for o in found.spec.operations] == ["good"]
    assert {p.pointer for p in found.problems} == {
        "/paths/~1list/get",
        "/paths/~1{broken/get",
        "/paths/~1a~1..~1b/get",
        "/paths/~1body/post/requestBody",
        "/paths/~1item",
        "/paths/~1gone",
    }
    assert all("left out" in p.reason and p.file == "api.yaml" for p in found.problems)


def test_an_operation_under_a_name_that_is_no_method_in_small_letters_is_told() -> None:
    found = reading(
        """
        /a:
          get: {operationId: a}
          psot: {operationId: b, responses: {}}
          GET: {responses: {}}
          Patch: {operationId: c, responses: {}}
          x-post: {responses: {}}
          parameters: []
          servers: [{url: 'http://h'}]
          note: {text: none}
        """
    )
    assert [(o.id, o.method) for o in found.spec.operations] == [("a", "GET"), ("c", "PATCH")]
    assert [(p.pointer, p.reason) for p in found.problems] == [
        ("/paths/~1a/psot", "no method has this name; it is left out"),
        ("/paths/~1a/GET", "no method has this name; it is left out"),
        ("/paths/~1a/Patch", "methods are in small letters; patch is meant"),
    ]


def test_dangling_schemas_and_responses_cost_no_operation() -> None:
    found = reading(
        """
        /a:
          post:
            requestBody: {content: {application/json: {schema: {$ref: '#/no'}}}}
            responses: {200: {$ref: '#/none'}}
        """
    )
    (only,) = found.spec.operations
    assert only.body is not None
    assert only.body.content == (MediaType("application/json", True),)
    assert only.responses == (Response("200"),)
    assert len(found.problems) == 2


def test_the_spec_survives_its_json_form() -> None:
    spec = reading(
        "/a/{id}: {get: {parameters: [{name: q, in: query, schema: {type: array}}]}}"
    ).spec
    assert from_json(to_json(spec)) == spec


def _parameters(text: str, path: str = "/a/{id}") -> dict[str, tuple[Any, ...]]:
    found = operation(f"{path}: {{get: {{parameters: [{text}]}}}}")
    return {p.name: (p.location, p.style, p.explode, p.required) for p in found.parameters}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("name: id, in: path", ("path", "simple", False, True)),
        ("name: id, in: path, style: label, explode: true", ("path", "label", True, True)),
        ("name: id, in: path, style: matrix", ("path", "matrix", False, True)),
        ("name: q, in: query", ("query", "form", True, False)),
        ("name: q, in: query, explode: false", ("query", "form", False, False)),
        ("name: q, in: query, style: spaceDelimited", ("query", "spaceDelimited", False, False)),
        ("name: q, in: query, style: pipeDelimited", ("query", "pipeDelimited", False, False)),
        ("name: q, in: query, style: deepObject", ("query", "deepObject", True, False)),
        ("name: X-H, in: header, required: true", ("header", "simple", False, True)),
        ("name: c, in: cookie, required: 'false'", ("cookie", "form", True, False)),
        ("name: q, in: query, required: 'true'", ("query", "form", True, True)),
    ],
)
def test_parameter_styles_of_openapi_3(written: str, meant: tuple[Any, ...]) -> None:
    found = _parameters(f"{{{written}, schema: {{type: array}}}}")
    assert meant in found.values()


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("in: query", ("form", False)),
        ("in: query, collectionFormat: multi", ("form", True)),
        ("in: query, collectionFormat: ssv", ("spaceDelimited", False)),
        ("in: query, collectionFormat: tsv", ("tabDelimited", False)),
        ("in: query, collectionFormat: pipes", ("pipeDelimited", False)),
        ("in: header", ("simple", False)),
    ],
)
def test_collection_formats_of_swagger_2(written: str, meant: tuple[str, bool]) -> None:
    found = swagger_operation(
        f"/a: {{get: {{parameters: [{{name: q, {written}, type: array, "
        "items: {type: string}}]}}"
    )
    (only,) = found.parameters
    assert (only.style, only.explode) == meant
    assert only.schema == {"type": "array", "items": {"type": "string"}}


def test_a_content_parameter_keeps_its_media_type() -> None:
    found = operation(
        """
        /a:
          get:
            parameters:
              - {name: q, in: query, content: {application/json: {schema: {type: object}}}}
        """
    )
    assert (found.parameters[0].media_type, found.parameters[0].schema) == (
        "application/json",
        {"type": "object"},
    )


def test_path_level_parameters_are_inherited_and_overridden() -> None:
    found = operation(
        """
        /a:
          parameters:
            - {name: q, in: query, schema: {type: string}}
            - {name: r, in: query, schema: {type: string}}
          get: {parameters: [{name: q, in: query, schema: {type: integer}}]}
        """
    )
    assert {p.name: p.schema for p in found.parameters} == {
        "q": {"type": "integer"},
        "r": {"type": "string"},
    }


def test_a_header_is_overridden_in_whatever_case_its_name_is_written() -> None:
    found = operation(
        """
        /a:
          parameters:
            - {name: X-Sum, in: header, schema: {type: string}}
            - {name: Sum, in: query, schema: {type: string}}
          get:
            parameters:
              - {name: x-sum, in: header, required: true, schema: {type: string}}
              - {name: sum, in: query, schema: {type: string}}
        """
    )
    assert sorted((each.location, each.name, each.required) for each in found.parameters) == [
        ("header", "x-sum", True),
        ("query", "Sum", False),
        ("query", "sum", False),
    ]


def test_undeclared_path_parameters_are_inferred_also_where_a_reference_dangles() -> None:
    found = reading("/a/{id}@{time}: {get: {parameters: [{$ref: '#/components/parameters/None'}]}}")
    (only,) = found.spec.operations
    assert [(p.name, p.location, p.required) for p in only.parameters] == [
        ("id", "path", True),
        ("time", "path", True),
    ]
    assert len(found.problems) == 1


@pytest.mark.parametrize(
    "written",
    [
        "{name: q}",
        "{in: query}",
        "{name: q, in: nowhere}",
        "{name: other, in: path}",
        "{name: 'bad header', in: header}",
        "{name: 'a\\tb', in: query}",
        "text",
        "{$ref: '#/none'}",
    ],
)
def test_an_unusable_parameter_is_reported_and_the_operation_kept(written: str) -> None:
    found = reading(f"/a: {{get: {{parameters: [{written.replace(chr(39), chr(34))}]}}}}")
    assert found.spec.operations[0].parameters == ()
    assert [p.pointer for p in found.problems] == ["/paths/~1a/get/parameters/0"]


def test_what_is_wrong_with_a_parameter_that_operations_refer_to_is_told_once() -> None:
    found = reading(
        """
        /a: {get: {parameters: [{$ref: '#/components/parameters/Q'}]}}
        /b: {get: {parameters: [{$ref: '#/components/parameters/Q'}]}}
        """,
        "components: {parameters: {Q: {name: q, in: Query, schema: {type: integer}}}}",
    )
    first, second = (each.parameters for each in found.spec.operations)
    assert first == second
    assert [(p.name, p.location, p.schema) for p in first] == [("q", "query", {"type": "integer"})]
    assert [p.pointer for p in found.problems] == ["/components/parameters/Q"]


def test_a_reference_to_no_parameter_is_reported_at_each_of_its_places() -> None:
    found = reading(
        """
        /a: {get: {parameters: [{$ref: '#/components/parameters/Q'}]}}
        /b: {get: {parameters: [{$ref: '#/components/parameters/Q'}]}}
        """,
        "components: {parameters: {Q: {name: q}}}",
    )
    places = [f"/paths/~1{path}/get/parameters/0" for path in "ab"]
    assert [p.pointer for p in found.problems] == places


def test_headers_that_are_no_parameters_are_ignored_in_silence() -> None:
    names = ("Accept", "content-type", "AUTHORIZATION", "Host", "Content-Length")
    listed = ", ".join(f"{{name: {name}, in: header, required: true}}" for name in names)
    assert _parameters(listed, "/a") == {}


def test_a_credential_is_never_a_parameter() -> None:
    rest = "components: {securitySchemes: {key: {type: apiKey, in: header, name: X-Key}}}"
    found = operation(
        "/a: {get: {security: [key: []], parameters: [{name: x-key, in: header}]}}", rest
    )
    assert found.parameters == ()
    assert found.security == (("key",),)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("{type: http, scheme: Bearer}", SecurityScheme("s", "bearer")),
        ("{type: http, scheme: basic}", SecurityScheme("s", "basic")),
        ("{type: http, scheme: digest}", SecurityScheme("s", "digest")),
        ("{type: http, scheme: hoba}", SecurityScheme("s", "other")),
        ("{type: mutualTLS}", SecurityScheme("s", "mutualTLS")),
        ("{type: oauth2, flows: {}}", SecurityScheme("s", "oauth2")),
        ("{type: openIdConnect}", SecurityScheme("s", "openIdConnect")),
        ("{type: apiKey, in: query, name: k}", SecurityScheme("s", "apiKey", "query", "k")),
        ("{type: apiKey, in: cookie, name: k}", SecurityScheme("s", "apiKey", "cookie", "k")),
        ("{type: apiKey, in: header, name: X-K}", SecurityScheme("s", "apiKey", "header", "X-K")),
    ],
)
def test_security_schemes(written: str, meant: SecurityScheme) -> None:
    rest = (
        f"security: [s: []]\ncomponents: {{securitySchemes: {{s: {written}, unused: {written}}}}}"
    )
    assert reading("/a: {get: {}}", rest).spec.security_schemes == (meant,)


def test_two_credentials_that_are_both_required_parameters_go_together() -> None:
    rest = """
    components:
      securitySchemes:
        key: {type: apiKey, in: query, name: key}
        token: {type: apiKey, in: query, name: token}
    security: [{key: []}, {token: []}]
    """
    both = "[{name: key, in: query, required: true}, {name: token, in: query, required: true}]"
    one = "[{name: key, in: query, required: true}, {name: token, in: query}]"
    found = reading(
        f"/both: {{get: {{parameters: {both}}}}}\n/one: {{get: {{parameters: {one}}}}}", rest
    )
    assert [(o.security, o.parameters) for o in found.spec.operations] == [
        ((("key", "token"), ("key",), ("token",)), ()),
        ((("key",), ("token",)), ()),
    ]


def test_security_alternatives_combinations_and_none() -> None:
    rest = """
    security: [{a: []}]
    components:
      securitySchemes: {a: {type: http, scheme: basic}, b: {type: http, scheme: bearer}}
    """
    found = reading(
        """
        /inherited: {get: {}}
        /both: {get: {security: [{a: [], b: []}, {b: [scope]}, {}]}}
        /open: {get: {security: []}}
        /unknown: {get: {security: [{c: []}, {a: []}]}}
        """,
        rest,
    )
    assert [o.security for o in found.spec.operations] == [
        (("a",),),
        (("a", "b"), ("b",), ()),
        (),
        (("a",),),
    ]
    assert "'c'" in found.problems[0].reason


@pytest.mark.parametrize(
    ("flows", "url", "grants"),
    [
        (
            "clientCredentials: {tokenUrl: 'https://a.test/t'}",
            "https://a.test/t",
            ("client_credentials",),
        ),
        (
            "clientCredentials: {tokenUrl: /t, refreshUrl: /t}",
            "https://h.test/t",
            ("client_credentials", "refresh_token"),
        ),
        ("password: {tokenUrl: t}", "https://h.test/v1/t", ("refresh_token", "password")),
        (
            "authorizationCode: {authorizationUrl: /a, tokenUrl: 'https://a.test/t?x=1'}",
            "https://a.test/t?x=1",
            ("refresh_token",),
        ),
        (
            "authorizationCode: {tokenUrl: /other}, clientCredentials: {tokenUrl: /t}",
            "https://h.test/t",
            ("client_credentials",),
        ),
        ("implicit: {authorizationUrl: /a}", "", ()),
        ("clientCredentials: {tokenUrl: 'file:///etc/passwd'}", "", ()),
        ("clientCredentials: {tokenUrl: 'https://u:p@a.test/t'}", "", ()),
        ("clientCredentials: {tokenUrl: 7}", "", ()),
        ("clientCredentials: []", "", ()),
    ],
)
def test_the_flows_that_a_program_can_use_are_read(
    flows: str, url: str, grants: tuple[str, ...]
) -> None:
    rest = f"""
    security: [o: []]
    servers: [{{url: 'https://h.test/v1'}}]
    components: {{securitySchemes: {{o: {{type: oauth2, flows: {{{flows}}}}}}}}}
    """
    (scheme,) = reading("/a: {get: {}}", rest).spec.security_schemes
    assert (scheme.token_url, scheme.grants) == (url, grants)


def test_a_discovery_document_is_remembered_where_it_can_be_asked() -> None:
    rest = """
    security: [o: []]
    components: {securitySchemes: {o: {type: openIdConnect, openIdConnectUrl: 'https://a.test/c'}}}
    """
    (scheme,) = reading("/a: {get: {}}", rest).spec.security_schemes
    assert (scheme.kind, scheme.discovery) == ("openIdConnect", "https://a.test/c")


def test_swagger_flows_are_read() -> None:
    rest = """
    securityDefinitions:
      o: {type: oauth2, flow: application, tokenUrl: 'https://a.test/t'}
    security: [o: []]
    """
    (scheme,) = read_openapi(swagger("/a: {get: {}}", rest)).spec.security_schemes
    assert (scheme.token_url, scheme.grants) == ("https://a.test/t", ("client_credentials",))


def test_swagger_basic_security_and_key() -> None:
    rest = """
    securityDefinitions:
      b: {type: basic}
      k: {type: apiKey, in: header, name: X}
      o: {type: oauth2}
    security: [{b: [], k: []}, {o: []}]
    """
    schemes = read_openapi(swagger("/a: {get: {}}", rest)).spec.security_schemes
    assert [(s.kind, s.parameter) for s in schemes] == [
        ("basic", "Authorization"),
        ("apiKey", "X"),
        ("oauth2", "Authorization"),
    ]


@pytest.mark.parametrize(
    ("servers", "meant"),
    [
        ("[{url: 'https://h.example/v1/'}]", "https://h.example/v1"),
        ("[{url: 'https://{r}.h.example', variables: {r: {default: eu}}}]", "https://eu.h.example"),
        ("[{url: 'https://{r}.h.example', variables: {r: {enum: [us]}}}]", "https://us.h.example"),
        ("[{url: '{s}://h.example', variables: {s: {default: http}}}]", "http://h.example"),
        ("[{url: /v2}]", "https://docs.example/v2"),
        ("[{url: v2}]", "https://docs.example/api/v2"),
        ("[]", "https://docs.example"),
        ("[{url: 'https://{unknown}.h'}, {url: 'http://second:8080'}]", "http://second:8080"),
        ("[{url: 'https://h.example/a b?x=1#y'}]", "https://h.example/a%20b"),
        ("[{url: 'https://BÜCHER.example'}]", "https://xn--bcher-kva.example"),
    ],
)
def test_servers(servers: str, meant: str) -> None:
    text = f"openapi: 3.0.0\nservers: {servers}\npaths: {{/a: {{get: {{}}}}}}"
    found = read_openapi(
        parse_document(text.encode(), "x", url="https://docs.example/api/openapi.yaml")
    )
    assert found.spec.operations[0].server == meant


@pytest.mark.parametrize(
    "server",
    ["ftp://h", "/v1", "https://", "https://user@h", "https://h:99999", "https://h/../x", "{x}"],
)
def test_without_a_usable_server_the_operation_is_left_out(server: str) -> None:
    text = f"openapi: 3.0.0\nservers: [{{url: '{server}'}}]\npaths: {{/a: {{get: {{}}}}}}"
    with pytest.raises(NoUsableOperation, match="base URL"):
        read_openapi(document(text))
    assert (
        read_openapi(document(text), "http://h:81/x/").spec.operations[0].server == "http://h:81/x"
    )


def test_a_base_url_must_be_absolute() -> None:
    with pytest.raises(NoUsableOperation, match="http"):
        read_openapi(api("/a: {get: {}}"), "api.example.com")


def test_the_nearest_servers_win_and_a_base_url_replaces_them_all() -> None:
    paths = """
    /a:
      servers: [{url: 'https://path.example'}]
      get: {servers: [{url: 'https://operation.example'}]}
      post: {}
    /b: {get: {}}
    """
    assert [o.server for o in reading(paths).spec.operations] == [
        "https://operation.example",
        "https://path.example",
        BASE,
    ]
    given = read_openapi(api(paths), "http://localhost:9/base").spec
    assert {o.url for o in given.operations} == {
        "http://localhost:9/base/a",
        "http://localhost:9/base/b",
    }


def test_a_swagger_server_is_scheme_host_and_base_path() -> None:
    assert swagger_operation("/a: {get: {}}").server == BASE
    text = b"swagger: '2.0'\nbasePath: /api/v1\npaths: {/a: {get: {}}}"
    found = read_openapi(parse_document(text, "x", url="http://localhost:8081/api/docs"))
    assert found.spec.operations[0].url == "http://localhost:8081/api/v1/a"


def test_bodies_of_openapi_3() -> None:
    found = operation(
        """
        /a:
          post:
            requestBody:
              required: true
              description: what to make
              content:
                application/json: {schema: {type: array}}
                multipart/form-data:
                  schema: {type: object}
                  encoding: {f: {contentType: image/png}, g: {style: form, explode: false}}
                text/plain: {}
        """
    )
    assert found.body is not None
    assert (found.body.required, found.body.description) == (True, "what to make")
    assert found.body.content == (
        MediaType("application/json", {"type": "array"}),
        MediaType(
            "multipart/form-data",
            {"type": "object"},
            {
                "f": Encoding("image/png"),
                "g": Encoding(style="form", explode=False),
            },
        ),
        MediaType("text/plain", None),
    )


def test_bodies_of_swagger_2() -> None:
    body = swagger_operation(
        """
        /a:
          post:
            consumes: [application/vnd.a+json]
            parameters: [{name: x, in: body, schema: {type: object}}]
        """
    ).body
    assert body is not None
    assert body.content == (MediaType("application/vnd.a+json", {"type": "object"}),)
    form = swagger_operation(
        """
        /a:
          post:
            parameters:
              - {name: n, in: formData, type: string, required: true, description: Name}
              - {name: t, in: formData, type: array, items: {type: string}}
        """
    ).body
    assert form is not None
    assert form.required
    (media,) = form.content
    assert media.type == "application/x-www-form-urlencoded"
    assert media.schema == {
        "type": "object",
        "properties": {
            "n": {"type": "string", "description": "Name"},
            "t": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["n"],
    }
    assert media.encoding == {"t": Encoding(style="form", explode=False)}


def test_a_swagger_file_makes_the_form_multipart() -> None:
    body = swagger_operation(
        """
        /a:
          post:
            consumes: [application/x-www-form-urlencoded]
            parameters: [{name: f, in: formData, type: file}]
        """
    ).body
    assert body is not None
    assert [media.type for media in body.content] == ["multipart/form-data"]


def test_responses_with_integer_codes_ranges_and_default() -> None:
    found = reading(
        """
        /a:
          get:
            responses:
              200: {description: ok, content: {application/json: {schema: {type: integer}}}}
              4xx: {description: bad}
              default: {description: other}
              x-note: {}
              oops: {}
        """
    )
    assert found.spec.operations[0].responses == (
        Response("200", "ok", (MediaType("application/json", {"type": "integer"}),)),
        Response("4XX", "bad"),
        Response("default", "other"),
    )
    assert [p.pointer for p in found.problems] == ["/paths/~1a/get/responses/oops"]


def test_swagger_responses_take_what_is_produced() -> None:
    found = swagger_operation(
        "/a: {get: {produces: [text/csv], responses: {200: {schema: {type: string}}}}}"
    )
    assert found.responses[0].content == (MediaType("text/csv", {"type": "string"}),)


def test_missing_and_repeated_ids_are_made_unique() -> None:
    found = reading("/a: {get: {operationId: x}, put: {operationId: x}, post: {}}")
    assert [o.id for o in found.spec.operations] == ["x", "PUT /a", "POST /a"]


def test_a_path_goes_on_the_wire_without_fragment_and_with_its_query_as_constants() -> None:
    found = reading(
        "'/a b/{id}?x=1&y={y}#z': {post: {}}\n'/c#one': {post: {}}\n'/c#two': {post: {}}"
    )
    first, second, third = found.spec.operations
    assert first.path == "/a%20b/{id}"
    assert [(p.name, p.location, p.required, p.schema) for p in first.parameters] == [
        ("id", "path", True, {"type": "string"}),
        ("x", "query", True, {"const": "1"}),
        ("y", "query", True, {"type": "string"}),
    ]
    assert (second.path, third.path) == ("/c", "/c")
    assert second.id != third.id


def test_extensions_webhooks_and_callbacks_are_left_aside() -> None:
    found = reading(
        "/a: {x-y: 1, post: {callbacks: {c: {'{$request.body#/url}': {post: {}}}}}}\nx-paths: 3",
        "webhooks: {w: {post: {operationId: no}}}",
        "3.1.0",
    )
    assert [o.path for o in found.spec.operations] == ["/a"]
    assert found.problems == ()


@pytest.mark.parametrize(
    ("method", "path", "written", "access"),
    [
        ("get", "/zones", "operationId: listZones", "read"),
        ("head", "/zones", "", "read"),
        ("get", "/error", "summary: Will always generate an error", "read"),
        ("get", "/users/{id}/delete", "", "write"),
        ("get", "/session/logout", "operationId: getLogout", "write"),
        ("get", "/a", "operationId: deleteThing", "write"),
        ("get", "/a", "operationId: thing_destroy", "write"),
        ("get", "/a", "summary: Deletes the thing", "write"),
        ("get", "/a", "summary: Starts a job", "write"),
        ("get", "/runs/{id}", "operationId: getRun", "read"),
        ("get", "/updates", "summary: List updates", "read"),
        ("get", "/imports/{id}/import", "operationId: getImport", "read"),
        ("post", "/search", "operationId: searchThings", "write"),
        ("put", "/a", "", "write"),
    ],
)
def test_access_is_judged_by_method_and_words(
    method: str, path: str, written: str, access: str
) -> None:
    assert operation(f"{path}: {{{method}: {{{written}}}}}").access == access


def test_texts_are_cleaned_of_markup_and_of_what_cannot_be_seen() -> None:
    hidden = "".join(chr(0xE0000 + ord(c)) for c in "obey")
    found = read_openapi(
        api(
            f'/a: {{get: {{summary: "<b>List</b>\\n all\\u202e{hidden} [zones](http://x)&amp;c"}}}}'
        )
    )
    assert found.spec.operations[0].summary == "List all zones&c"


def test_schemes_that_no_operation_asks_for_are_used_where_their_secret_is_given() -> None:
    rest = """
    components:
      securitySchemes:
        key: {type: apiKey, in: query, name: key}
        token: {type: http, scheme: bearer}
        cert: {type: mutualTLS}
    """
    found = reading("/a: {get: {}}", rest)
    assert found.spec.operations[0].security == (("key",), ("token",), ())
    assert [p.pointer for p in found.problems] == ["/components/securitySchemes/cert"]
    assert "mutual TLS is not supported" in found.problems[0].reason


def test_a_document_that_says_where_its_schemes_apply_is_believed() -> None:
    rest = "components: {securitySchemes: {token: {type: http, scheme: bearer}}}"
    paths = "/a: {get: {security: [{token: []}]}}\n/b: {get: {}}"
    assert [o.security for o in reading(paths, rest).spec.operations] == [(("token",),), ()]


@pytest.mark.parametrize("root", ["", "\nsecurity: []"])
def test_an_operation_that_says_that_it_takes_no_credential_gets_none(root: str) -> None:
    rest = f"components: {{securitySchemes: {{token: {{type: http, scheme: bearer}}}}}}{root}"
    paths = "/login: {post: {security: []}}\n/open: {get: {security: [{}]}}\n/b: {get: {}}"
    found = {o.path: o.security for o in reading(paths, rest).spec.operations}
    assert found == {"/login": (), "/open": ((),), "/b": (("token",), ())}


def test_a_parameter_at_the_place_of_an_unapplied_scheme_stays_an_argument() -> None:
    rest = "components: {securitySchemes: {key: {type: apiKey, in: query, name: key}}}"
    paths = "/a: {get: {parameters: [{in: query, name: key, schema: {type: string}}]}}"
    found = operation(paths, rest)
    assert [p.name for p in found.parameters] == ["key"]
    assert found.security == ((),)


def test_the_methods_of_3_2_are_read() -> None:
    paths = """
    /a:
      query: {operationId: ask}
      additionalOperations: {PURGE: {operationId: purge}, "b ad": {operationId: bad}}
    """
    found = reading(paths, version="3.2.0")
    told = [(o.id, o.method, o.access) for o in found.spec.operations]
    assert told == [("ask", "QUERY", "read"), ("purge", "PURGE", "write")]
    assert "no further method" in found.problems[0].reason


def test_the_whole_query_of_3_2_is_an_exploded_object() -> None:
    paths = """
    /a:
      get:
        parameters:
          - in: querystring
            name: all
            content: {application/x-www-form-urlencoded: {schema: {type: object}}}
    """
    (only,) = operation(paths, version="3.2.0").parameters
    assert (only.location, only.style, only.explode, only.media_type) == (
        "query",
        "form",
        True,
        None,
    )


@pytest.mark.parametrize("name", ["X-Forwarded-For", "X-HTTP-Method-Override", "Via"])
def test_an_optional_header_that_the_broker_refuses_is_not_offered(name: str) -> None:
    listed = f"[{{in: header, name: {name}, schema: {{type: string}}}}]"
    found = reading(f"/a: {{get: {{parameters: {listed}}}}}")
    assert found.spec.operations[0].parameters == ()
    assert "is not a caller's to set" in found.problems[0].reason


@pytest.mark.parametrize("kind", ["{type: string, format: binary}", "{type: array, items: {}}"])
def test_a_multipart_body_that_is_no_object_is_taken_as_one_file(kind: str) -> None:
    content = f"{{multipart/form-data: {{schema: {kind}}}}}"
    found = reading(f"/a: {{post: {{requestBody: {{content: {content}}}}}}}")
    body = found.spec.operations[0].body
    assert body is not None
    assert isinstance(body.content[0].schema, dict)
    assert list(body.content[0].schema["properties"]) == ["file"]
    assert "taken as its part 'file'" in found.problems[0].reason


def test_the_path_is_kept_as_the_document_writes_it() -> None:
    paths = "'/a?x=1': {get: {}}\n'/b#frag': {get: {}}\n/c/: {get: {}}"
    written = [(o.path, o.written) for o in reading(paths).spec.operations]
    assert written == [("/a", "/a?x=1"), ("/b", "/b#frag"), ("/c/", "/c/")]


def test_a_header_that_carries_a_credential_is_one_and_no_argument() -> None:
    listed = "[{in: header, name: authorization, required: true, schema: {type: string}}]"
    found = reading(f"/a: {{get: {{parameters: {listed}}}}}\n/b: {{get: {{}}}}").spec
    first, second = found.operations
    assert (first.parameters, first.security) == ((), (("authorization",), ()))
    assert second.security == ()
    place = SecurityScheme("authorization", "apiKey", "header", "Authorization")
    assert found.security_schemes == (place,)


@pytest.mark.parametrize("placeholder", ["{proxy+}", "{+proxy}", "{proxy*}"])
def test_a_greedy_placeholder_is_called_as_its_parameter(placeholder: str) -> None:
    listed = "[{in: path, name: proxy, required: true, schema: {type: string}}]"
    found = operation(f"'/a/{placeholder}': {{get: {{parameters: {listed}}}}}")
    assert (found.path, found.written) == ("/a/{proxy}", f"/a/{placeholder}")


def test_the_items_of_a_sequence_of_3_2_are_a_list() -> None:
    content = "{application/jsonl: {itemSchema: {type: integer}}}"
    found = operation(f"/a: {{post: {{requestBody: {{content: {content}}}}}}}", version="3.2.0")
    assert found.body is not None
    assert found.body.content[0].schema == {"type": "array", "items": {"type": "integer"}}


@pytest.mark.parametrize(
    ("parameters", "kind", "properties"),
    [
        ("[{name: x, in: body, schema: {properties: {a: {}}}}]", "application/json", {"a": {}}),
        (
            "[{name: n, in: formData, schema: {type: string}}]",
            "application/x-www-form-urlencoded",
            {"n": {"type": "string"}},
        ),
        (
            "[{name: f, in: formData, type: array, items: {type: file}}]",
            "multipart/form-data",
            {"f": {"type": "array", "items": {"type": "string", "format": "binary"}}},
        ),
    ],
)
def test_a_body_among_the_parameters_of_openapi_3_is_the_body(
    parameters: str, kind: str, properties: Any
) -> None:
    found = reading(f"/a: {{post: {{parameters: {parameters}}}}}")
    body = found.spec.operations[0].body
    assert body is not None
    (media,) = body.content
    assert (media.type, media.schema["properties"]) == (kind, properties)  # type: ignore[index]
    assert ["it is read as the request body" in p.reason for p in found.problems] == [True]


def test_a_body_parameter_beside_a_request_body_is_left_out() -> None:
    body = "requestBody: {content: {text/plain: {}}}"
    found = reading(f"/a: {{post: {{parameters: [{{name: x, in: body}}], {body}}}}}")
    written = found.spec.operations[0].body
    assert written is not None
    assert [media.type for media in written.content] == ["text/plain"]
    assert "left out" in found.problems[0].reason


def test_parts_of_openapi_3_in_a_swagger_document_are_read_as_there() -> None:
    content = "content: {application/json: {schema: {type: string}}}"
    found = read_openapi(
        swagger(
            f"""
            /a:
              post:
                parameters: [{{name: q, in: query, schema: {{type: integer}}}}]
                requestBody: {{{content}}}
                responses: {{200: {{{content}}}}}
            """
        )
    )
    (one,) = found.spec.operations
    media = MediaType("application/json", {"type": "string"})
    assert one.parameters[0].schema == {"type": "integer"}
    assert one.body is not None
    assert one.body.content == (media,)
    assert one.responses[0].content == (media,)
    assert "`requestBody` is of OpenAPI 3" in found.problems[0].reason


@pytest.mark.parametrize(
    ("written", "meant", "told"),
    [
        ("in: Query, schema: {type: array}", ("query", "form", True), "`in` cannot be 'Query'"),
        ("in: query, type: array, collectionFormat: csv", ("query", "form", False), "is read as"),
        ("in: query, type: array, collectionFormat: pipes", ("query", "pipeDelimited", False), ""),
    ],
)
def test_a_parameter_in_the_words_of_another_version_is_read(
    written: str, meant: tuple[Any, ...], told: str
) -> None:
    found = reading(f"/a: {{get: {{parameters: [{{name: q, {written}}}]}}}}")
    (one,) = found.spec.operations[0].parameters
    assert (one.location, one.style, one.explode) == meant
    assert told in found.problems[0].reason


@pytest.mark.parametrize(
    ("path", "template"),
    [
        ("/pets/:id", "/pets/{id}"),
        ("/pets/:id/toys", "/pets/{id}/toys"),
        ("/pets/<id>", "/pets/{id}"),
        ("/pets/<int:id>.json", "/pets/{id}.json"),
        ("/pets/%7Bid%7D", "/pets/{id}"),
        ("/pets/{{id}}", "/pets/{id}"),
        ("/pets/*id", "/pets/{id}"),
        ("https://pets.example/pets/{id}", "/pets/{id}"),
    ],
)
def test_a_placeholder_in_a_frameworks_words_is_the_declared_parameter(
    path: str, template: str
) -> None:
    parameter = "{name: id, in: path, required: true, schema: {type: integer}}"
    one = operation(f"'{path}': {{get: {{parameters: [{parameter}]}}}}")
    assert one.path == template
    assert [p.schema for p in one.parameters] == [{"type": "integer"}]


@pytest.mark.parametrize(
    ("path", "template"),
    [
        ("/pets/:id", "/pets/{id}"),
        ("/pets/{id}:feed", "/pets/{id}:feed"),
        ("/pets:search", "/pets:search"),
        ("/pets/12:30", "/pets/12:30"),
        ("/pets/<b>", "/pets/%3Cb%3E"),
        ("/pets/*", "/pets/*"),
        ("/pets/*id", "/pets/*id"),
    ],
)
def test_only_a_whole_segment_after_a_colon_is_an_undeclared_placeholder(
    path: str, template: str
) -> None:
    assert operation(f"'{path}': {{get: {{}}}}").path == template


def test_a_star_that_is_declared_is_an_argument() -> None:
    """As Elysia and Fastify describe what lies below a path."""
    parameter = "{name: '*', in: path, required: true, schema: {type: string}}"
    one = operation(f"'/files/*': {{get: {{parameters: [{parameter}]}}}}")
    assert (one.path, [p.name for p in one.parameters]) == ("/files/{*}", ["*"])


@pytest.mark.parametrize(
    ("path", "parameters"),
    [
        ("/a?x={x}&y=1", [("query", "x", {"type": "integer"}), ("query", "y", {"const": "1"})]),
        ("/a?{x}=1", [("query", "x", {"type": "integer"})]),
        ("/a?page={x}", [("query", "page", {"type": "integer"})]),
        ("/a?page={x}-{y}", [("query", "page", {"type": "string"})]),
        ("/{x}?of={x}", [("path", "x", {"type": "integer"}), ("query", "of", {"type": "integer"})]),
    ],
)
def test_the_placeholders_of_a_query_in_the_path_are_arguments(path: str, parameters: Any) -> None:
    declared = "[{name: x, in: path, required: true, schema: {type: integer}}]"
    one = operation(f"'{path}': {{get: {{parameters: {declared}}}}}")
    assert [(p.location, p.name, p.schema) for p in one.parameters] == parameters


def test_a_path_that_is_a_whole_url_has_its_own_server() -> None:
    paths = "'https://pets.example/v2/pets': {get: {}}"
    assert operation(paths).url == "https://pets.example/v2/pets"
    found = read_openapi(api(paths), "http://127.0.0.1:9")
    assert found.spec.operations[0].url == "http://127.0.0.1:9/v2/pets"


def test_a_query_expression_in_a_path_is_its_declared_parameters() -> None:
    parameters = "[{name: a, in: query}, {name: b, in: query}]"
    one = operation(f"'/pets{{?a,b*}}': {{get: {{parameters: {parameters}}}}}")
    assert (one.path, [p.name for p in one.parameters]) == ("/pets", ["a", "b"])


@pytest.mark.parametrize(
    ("written", "declared", "path"),
    [
        ("/a/{id:[0-9]{3}}", "id", "/a/{id}"),
        ("/a/{id:int}", "id", "/a/{id}"),
        ("/a/{ id }", "id", "/a/{id}"),
        ("/a/{id?}", "id", "/a/{id}"),
        ("/a{/id}", "id", "/a/{id}"),
        ("/a/{id}{.format}", "id", "/a/{id}"),
        ("/a{.id}", "id", "/a.{id}"),
        ("/a/{;id}", "id", "/a/;id={id}"),
        ("/a{;id}", "other", "/a"),
        ("/a/{.id}", ".id", "/a/{.id}"),
        ("/a/{x:y}", "x:y", "/a/{x:y}"),
    ],
)
def test_a_placeholder_with_what_a_framework_says_of_it_is_the_declared_one(
    written: str, declared: str, path: str
) -> None:
    (found,) = reading(
        f"'{written}': {{get: {{parameters: [{{name: '{declared}', in: path, required: true, "
        "schema: {type: integer}}]}}"
    ).spec.operations
    assert found.path == path
    names = [p.name for p in found.parameters if p.schema == {"type": "integer"}]
    assert names == ([declared] if declared != "other" else [])


def test_an_end_of_a_route_is_two_placeholders_where_both_are_declared() -> None:
    both = "[{name: id, in: path, type: integer}, {name: format, in: path, type: string}]"
    found = swagger_operation(f"'/a/:id.:format': {{get: {{parameters: {both}}}}}")
    assert found.path == "/a/{id}.{format}"


def test_names_of_a_query_expression_that_nothing_declares_are_optional_parameters() -> None:
    found = operation(
        "'/a{?q,r*}': {get: {parameters: [{name: q, in: query, schema: {type: integer}}]}}"
    )
    assert found.path == "/a"
    assert [(p.name, p.schema, p.required) for p in found.parameters] == [
        ("q", {"type": "integer"}, False),
        ("r", {"type": "string"}, False),
    ]


def test_several_body_parameters_are_fields_of_one_object() -> None:
    found = read_openapi(
        swagger(
            """
            /a:
              post:
                parameters:
                - {name: user, in: body, required: true, schema: {type: object}}
                - {name: age, in: body, type: integer}
            """
        )
    )
    body = found.spec.operations[0].body
    assert body is not None
    assert body.content == (
        MediaType(
            "application/json",
            {
                "type": "object",
                "properties": {"user": {"type": "object"}, "age": {"type": "integer"}},
                "required": ["user"],
            },
        ),
    )
    assert body.required
    assert len(found.problems) == 2


def test_a_body_parameter_beside_a_file_is_a_part_of_the_form() -> None:
    found = read_openapi(
        swagger(
            """
            /a:
              post:
                consumes: [application/json]
                parameters:
                - {name: meta, in: body, schema: {type: object}}
                - {name: file, in: formData, type: file, required: true}
            """
        )
    )
    body = found.spec.operations[0].body
    assert body is not None
    (media,) = body.content
    assert media.type == "multipart/form-data"
    assert isinstance(media.schema, dict)
    assert list(media.schema["properties"]) == ["meta", "file"]
    assert media.schema["required"] == ["file"]


def test_a_body_parameter_with_a_type_of_its_own_has_it() -> None:
    found = swagger_operation("/a: {post: {parameters: [{name: b, in: body, type: string}]}}")
    assert found.body is not None
    assert found.body.content == (MediaType("application/json", {"type": "string"}),)


@pytest.mark.parametrize(
    ("server", "url"),
    [("https://h.test/v1/rpc", "https://h.test/v1/rpc"), ("https://h.test", "https://h.test/")],
)
def test_an_empty_path_is_the_url_of_the_server_itself(server: str, url: str) -> None:
    found = read_openapi(api("'': {post: {}}"), server)
    assert [o.url for o in found.spec.operations] == [url]
