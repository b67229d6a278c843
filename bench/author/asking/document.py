"""The description of an API that a service's tools ask, made from what it answers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from bench.author.asking.service import Service
from forge.compiler.compile import compile_document
from forge.readers.document import parse_document
from sandbox.bundle.model import Bundle

_SLOT = re.compile(r"\{(\w+)\}")


def compile_api(service: Service) -> Bundle | None:
    """The compiled API of a service whose tools make requests; None where they call tools."""
    requests = [request for tool in service.tools for request in tool.get("requests", ())]
    if not requests:
        return None
    base = "{0.scheme}://{0.netloc}".format(urlsplit(requests[0]["url"]))
    paths: dict[str, Any] = {}
    for request in requests:
        path = urlsplit(request["url"]).path
        made = _build_operation(service, request["method"], base + path)
        paths.setdefault(path, {})[request["method"].lower()] = made
    info = {"title": service.name, "version": "1"}
    document = {"openapi": "3.1.0", "info": info, "servers": [{"url": base}], "paths": paths}
    text = json.dumps(document).encode()
    return compile_document(parse_document(text, f"{base}/openapi.json")).bundle


def _build_operation(service: Service, method: str, template: str) -> dict[str, Any]:
    place = re.compile(_SLOT.sub("[^/]+", template.replace(".", r"\.")) + r"\Z")
    own = [
        answer
        for world in service.shown
        for answer in world.answers
        if answer.get("request", "").startswith(f"{method} ")
        and place.match(answer["request"].partition(" ")[2].partition("?")[0])
    ]
    urls = [urlsplit(answer["request"].partition(" ")[2]) for answer in own]
    names = dict.fromkeys(name for url in urls for name, _ in parse_qsl(url.query))
    text = {"type": "string"}
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": text}
        for name in _SLOT.findall(template)
    ]
    parameters += [{"name": name, "in": "query", "schema": text} for name in names]
    good = [answer for answer in own if answer["status"] < 300]
    told = {"application/json": {"schema": infer_schema([answer["body"] for answer in good])}}
    statuses = sorted({str(answer["status"]) for answer in good})
    operation: dict[str, Any] = {
        "parameters": parameters,
        "responses": {status: {"description": "", "content": told} for status in statuses},
    }
    if method == "POST":
        keyed = {"name": "Idempotency-Key", "in": "header", "schema": text}
        sent = {"schema": infer_schema([answer["sent"] for answer in good])}
        operation["parameters"].append(keyed)
        operation["requestBody"] = {"required": True, "content": {"application/json": sent}}
    return operation


def infer_schema(values: Sequence[Any]) -> dict[str, Any]:
    """A schema of values of one type, null aside; {} where there are several."""
    kinds = {_name_type(value) for value in values}
    plain = kinds - {"null"}
    if plain == {"integer", "number"}:
        plain = {"number"}
    if len(plain) != 1:
        return {}
    (kind,) = plain
    made: dict[str, Any] = {"type": [kind, "null"] if "null" in kinds else kind}
    if kind == "object":
        found = [value for value in values if isinstance(value, Mapping)]
        keys = dict.fromkeys(key for value in found for key in value)
        made["properties"] = {
            key: infer_schema([value[key] for value in found if key in value]) for key in keys
        }
        made["required"] = [key for key in keys if all(key in value for value in found)]
    elif kind == "array":
        made["items"] = infer_schema([item for value in values for item in value or ()])
    return made


def _name_type(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    kinds = ((int, "integer"), (float, "number"), (str, "string"), (list, "array"))
    return next((name for kind, name in kinds if isinstance(value, kind)), "object")
