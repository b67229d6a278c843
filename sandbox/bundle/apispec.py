"""Model of an API: the values that every reader produces and every later step consumes.

Schemas are JSON Schema 2020-12 (https://json-schema.org/draft/2020-12) whatever dialect the source
used; a `$ref` in them is always `#/$defs/NAME` and names an entry of `APISpec.schemas`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, cast

Schema = Mapping[str, Any] | bool
Location = Literal["path", "query", "header", "cookie", "variable"]
Access = Literal["read", "write"]
Style = Literal[
    "simple",
    "form",
    "label",
    "matrix",
    "spaceDelimited",
    "pipeDelimited",
    "tabDelimited",
    "deepObject",
    "cookie",
    "whole",
]


@dataclass(frozen=True)
class Parameter:
    """One path, query, header or cookie parameter (OpenAPI 3.1, section 4.8.12), or a variable of a
    GraphQL document.

    `media_type` is set for a `content` parameter, which is written as that type and not by style.
    `tabDelimited` is Swagger 2.0's `tsv`; its `csv`, `ssv`, `pipes` and `multi` are 3.x styles.
    `cookie` is 3.2's, unescaped; `whole` a parameter that is all of the query, under no name.
    """

    name: str
    location: Location
    schema: Schema = True
    required: bool = False
    style: Style = "form"
    explode: bool = True
    allow_reserved: bool = False
    media_type: str | None = None
    description: str = ""


@dataclass(frozen=True)
class Encoding:
    """How one property of a form or multipart body is written (OpenAPI 3.1, section 4.8.15)."""

    content_type: str | None = None
    style: Style | None = None
    explode: bool = True
    allow_reserved: bool = False


@dataclass(frozen=True)
class MediaType:
    """One representation of a body. `schema` is None where the document gives none."""

    type: str
    schema: Schema | None = None
    encoding: Mapping[str, Encoding] = field(default_factory=dict)


@dataclass(frozen=True)
class RequestBody:
    content: tuple[MediaType, ...]
    required: bool = False
    description: str = ""


@dataclass(frozen=True)
class Response:
    """`status` is "200", a range such as "2XX", or "default". No content: no body is documented.
    `headers` are the names of those that are documented, in lower case.
    """

    status: str
    description: str = ""
    content: tuple[MediaType, ...] = ()
    headers: tuple[str, ...] = ()


@dataclass(frozen=True)
class SecurityScheme:
    """`location` and `parameter` say where an apiKey goes; the other kinds use Authorization.

    `token_url` and `grants` (RFC 6749: client_credentials, refresh_token, password) are what the
    document's OAuth flows allow without a browser, `discovery` is OpenID Connect's document; URLs
    are absolute. `given` says that a person declared the scheme, not the document; `prefix` is then
    the word before the secret in an apiKey's header, such as `token` in `Authorization: token …`.

    `authorization_url`, `device_url` and `login_url` are the endpoints at which a person logs in
    (RFC 6749 section 3.1, RFC 8628 section 3.1) and that of the tokens of such log-ins.
    `description` is what the document says of it, cleaned: a stranger's text, for people.
    """

    name: str
    kind: Literal[
        "apiKey", "bearer", "basic", "digest", "oauth2", "openIdConnect", "mutualTLS", "other"
    ]
    location: Literal["header", "query", "cookie"] = "header"
    parameter: str = "Authorization"
    token_url: str = ""
    discovery: str = ""
    grants: tuple[Literal["client_credentials", "refresh_token", "password"], ...] = ()
    given: bool = False
    prefix: str = ""
    authorization_url: str = ""
    device_url: str = ""
    login_url: str = ""
    description: str = ""


@dataclass(frozen=True)
class Operation:
    """One method on one path template. `server` is the absolute base URL the path is appended to;
    `written` is the path as its document has it, with what never goes on the wire.

    `security` lists alternatives; each is the scheme names that go together; an empty alternative
    means that anonymous access is allowed, no alternatives that none is asked for. `scopes` are
    those that it needs, each with its scheme's name. `document` is the GraphQL document that the
    operation consists of; its parameters are its variables.
    """

    id: str
    method: str
    path: str
    server: str
    access: Access
    summary: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    parameters: tuple[Parameter, ...] = ()
    body: RequestBody | None = None
    responses: tuple[Response, ...] = ()
    security: tuple[tuple[str, ...], ...] = ()
    deprecated: bool = False
    written: str = ""
    document: str = ""
    scopes: tuple[tuple[str, str], ...] = ()

    @property
    def url(self) -> str:
        """The absolute URL template: server and path with exactly one slash between them."""
        return self.server.rstrip("/") + "/" + self.path.lstrip("/")


@dataclass(frozen=True)
class APISpec:
    """An API as read from the document at `source`; `dialect` is the format of that document."""

    title: str
    version: str
    source: str
    dialect: str
    operations: tuple[Operation, ...]
    description: str = ""
    security_schemes: tuple[SecurityScheme, ...] = ()
    schemas: Mapping[str, Schema] = field(default_factory=dict)

    def get_operation(self, operation_id: str) -> Operation:
        """The operation of that id. Raises KeyError."""
        for operation in self.operations:
            if operation.id == operation_id:
                return operation
        raise KeyError(operation_id)


def to_json(spec: APISpec) -> dict[str, Any]:
    """The spec as plain JSON values, the content of a bundle's `spec.json`."""
    return _record_to_plain(spec)


def _record_to_plain(record: Any) -> dict[str, Any]:
    """A dataclass of this module as JSON; schemas are JSON and stay the objects that they are."""
    made = {
        name: _to_plain(value) if value.__class__ in _NOT_PLAIN else value
        for name, value in vars(record).items()
    }
    if isinstance(record, MediaType):
        made["encoding"] = {name: _record_to_plain(each) for name, each in record.encoding.items()}
    elif isinstance(record, SecurityScheme) and not record.prefix:
        # Most have none, and a file's digest is not to depend on what is not there.
        del made["prefix"]
    return made


def _to_plain(value: Any) -> Any:
    if value.__class__ is tuple:
        return [_to_plain(item) for item in value]
    return _record_to_plain(value) if value.__class__ in _NOT_PLAIN else value


_NOT_PLAIN = frozenset(
    {tuple, Operation, Parameter, RequestBody, MediaType, Response, SecurityScheme}
)


def from_json(data: Mapping[str, Any]) -> APISpec:
    """The inverse of `to_json`. Raises KeyError, TypeError or ValueError on anything else."""
    return APISpec(
        **{
            **data,
            "operations": tuple(map(_parse_operation, data["operations"])),
            "security_schemes": tuple(map(_parse_scheme, data["security_schemes"])),
        }
    )


def _parse_scheme(data: Mapping[str, Any]) -> SecurityScheme:
    return SecurityScheme(**{**data, "grants": tuple(data["grants"])})


def _parse_operation(data: Mapping[str, Any]) -> Operation:
    body = data["body"]
    return Operation(
        **{
            **data,
            "tags": tuple(data["tags"]),
            "parameters": tuple(Parameter(**p) for p in data["parameters"]),
            "body": body
            and RequestBody(**{**body, "content": tuple(map(_parse_media_type, body["content"]))}),
            "responses": tuple(
                Response(
                    **{
                        **r,
                        "content": tuple(map(_parse_media_type, r["content"])),
                        "headers": tuple(r.get("headers", ())),
                    }
                )
                for r in data["responses"]
            ),
            "security": tuple(tuple(names) for names in data["security"]),
            "scopes": tuple((str(name), str(scope)) for name, scope in data.get("scopes", ())),
        }
    )


def _parse_media_type(data: Mapping[str, Any]) -> MediaType:
    encoding = cast(Mapping[str, Mapping[str, Any]], data["encoding"])
    return MediaType(
        type=data["type"],
        schema=data["schema"],
        encoding={name: Encoding(**value) for name, value in encoding.items()},
    )
