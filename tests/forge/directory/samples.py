"""Small directories and packages, made as the shipped ones are."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from forge.directory.build import build_index, compress_index
from forge.directory.service import Directory, parse_index


def description(
    title: str = "Mooring",
    server: str = "https://api.mooring.example",
    text: str = "Berths of a harbour.",
    origin: str = "https://mooring.example/openapi.json",
    path: str = "/berths",
) -> dict[str, Any]:
    answer = {"200": {"description": "ok", "content": {"application/json": {"schema": {}}}}}
    return {
        "openapi": "3.0.3",
        "info": {
            "title": title,
            "version": "2022-03-04",
            "description": text,
            "x-origin": [{"url": origin}],
        },
        "servers": [{"url": server}],
        "paths": {path: {"get": {"operationId": "list", "responses": answer}}},
    }


def tarball(place: Path, documents: Mapping[str, Any]) -> Path:
    """A package with a member a document, by identity; bytes are written as they are."""
    with tarfile.open(place, "w:gz") as archive:
        for identity, document in documents.items():
            content = document if isinstance(document, bytes) else json.dumps(document).encode()
            member = tarfile.TarInfo(f"package/api/{identity}.json")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return place


def directory(place: Path, documents: Mapping[str, Any]) -> Directory:
    """The directory of a package that is written to `place`."""
    return parse_index(compress_index(build_index(tarball(place, documents), "1.0.0")))
