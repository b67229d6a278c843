"""Where frameworks serve an API's description, likeliest first."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urljoin, urlsplit

WELL_KNOWN = (
    "/openapi.json",  # FastAPI, Huma, connexion
    "/swagger.json",  # Flask-RESTX, drf-yasg, Vert.x
    "/.well-known/api-catalog",  # RFC 9727
    "/api/docs",  # PowerDNS; the page of django-ninja, Portainer
    "/api/openapi.json",  # django-ninja
    "/v3/api-docs",  # springdoc
    "/api-docs",  # swagger-ui-express, rswag, the page of many
    "/docs",
    "/openapi.yaml",
    "/api/schema/",  # drf-spectacular
    "/swagger/v1/swagger.json",  # Swashbuckle
    "/api/v1/openapi.json",
    "/api/swagger.json",
    "/v2/api-docs",  # springfox
    "/openapi/v1.json",  # ASP.NET Core since 9
    "/schema/openapi.json",  # Litestar
    "/swagger/doc.json",  # swaggo
    "/documentation/json",  # Fastify
    "/swagger.yaml",
    "/docs/openapi.json",
    "/api-json",  # NestJS
    "/openapi",  # MicroProfile OpenAPI
    "/q/openapi",  # Quarkus
    "/swagger.v1.json",  # Gitea, Forgejo
    "/api-docs/openapi.json",  # utoipa, Jellyfin
    "/apispec_1.json",  # flasgger
    "/.well-known/openapi.json",
    "/openapi.yml",
    "/api/v1/openapi.yml",  # n8n
    "/swagger-resources",
    "/v1/openapi.json",
    "/api/v1/swagger.json",
    "/api/v1/docs/",
    "/swagger-ui",  # the page of flask-smorest, Dropwizard, Tapir
    "/swagger",  # the page of Swashbuckle, Elysia, Micronaut
    "/api/v1/_openapi",  # Flask-AppBuilder, Superset
    "/server/specs/oas",  # Directus
    "/doc",  # Hono
    "/apidoc/openapi.json",  # SpecTree
    "/v1.0/openapi.json",  # the base path of Connexion's examples
    "/api/openapi/openapi.json",  # moleculer-auto-openapi
)
BESIDE = (
    "openapi.json",
    "swagger.json",
    "docs",
    "api-docs",
    "v3/api-docs",
    "openapi.yaml",
    "__api__",  # Kinto, by pyramid's cornice_swagger
    "full-spec",  # changedetection.io
)
"""What is tried under the path of a base URL, before the host's well-known places."""
PREFIXES = ("/api/v1", "/v1", "/api", "/api/v2", "/v2")
"""Where APIs that have no description at a host's usual places usually begin."""
SUFFIXES = ("openapi.json", "swagger.json", "openapi.yaml")
RARE_SUFFIXES = ("__api__", "full-spec")
"""Those that are tried under the first three prefixes only, for want of requests."""
_API_ROOT = re.compile(r"/(?:api|rest|v\d{1,3}(?:\.\d{1,3})?)/?$", re.I)
GRAPHQL = "/graphql"
"""The usual endpoint of GraphQL, which is asked last."""
GRAPHQL_BY_GET = ("/api/graphql", "/graphql/")
"""That of Next.js and Payload, and that of Django and Saleor. They are asked by POST only where
they answer a GET as a GraphQL server does: below `/api` any name may be a list that takes a POST.
"""


def list_well_known_urls(base: str) -> Iterator[str]:
    """Yield the URLs to try for an API at `base`: below its path first, beside it, then on its
    host.
    """
    path = urlsplit(base).path
    if path.strip("/"):
        directory = base.partition("?")[0].partition("#")[0].rstrip("/") + "/"
        yield from (urljoin(directory, name) for name in BESIDE)
        if path.strip("/").count("/"):
            yield from (urljoin(directory, f"../{name}") for name in BESIDE[:2])
        yield urljoin(base, "/")
    yield from (urljoin(base, place) for place in WELL_KNOWN)


def list_prefixed_urls(base: str) -> Iterator[str]:
    """Yield the URLs to try after all others: each suffix under each prefix of the host."""
    for at, prefix in enumerate(PREFIXES):
        for suffix in (*SUFFIXES, *(RARE_SUFFIXES if at < 3 else ())):
            yield urljoin(base, f"{prefix}/{suffix}")


def list_urls_below(root: str) -> Iterator[str]:
    """Yield the URLs to try where a host says that its API begins, as by a redirect of `/` to
    `/v1/`; none where the path does not end like that.
    """
    if _API_ROOT.search(urlsplit(root).path):
        directory = root.partition("?")[0].partition("#")[0].rstrip("/") + "/"
        yield from (urljoin(directory, name) for name in BESIDE)
