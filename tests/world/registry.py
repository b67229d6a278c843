"""A package registry on this machine's loopback: an index of wheels (PEP 503), and npm's."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote


@dataclass
class FakeRegistry:
    """`files` are its answers by path; `asked` are the paths it was asked for, `heard` all headers'
    values. It answers only once `open` is set.
    """

    port: int
    files: dict[str, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    heard: list[str] = field(default_factory=list)
    open: threading.Event = field(default_factory=threading.Event)
    _wheels: dict[str, list[str]] = field(default_factory=dict)
    _packages: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """The settings of a user whose packages come from here."""
        return {"PIP_INDEX_URL": f"{self.url}/simple/", "npm_config_registry": self.url}

    def add_wheel(self, name: str, version: str, files: Mapping[str, str], *needs: str) -> bytes:
        """List a wheel with these files and `Requires-Dist`; returns it."""
        wheel = build_wheel(name, version, files, *needs)
        path = f"/files/{name}-{version}-py3-none-any.whl"
        self.files[path] = wheel
        listed = self._wheels.setdefault(name, [])
        listed.append(f'<a href="{path}#sha256={hashlib.sha256(wheel).hexdigest()}">')
        listed[-1] += f"{path.rpartition('/')[2]}</a>"
        page = f"<html><body>{''.join(listed)}</body></html>"
        self.files[f"/simple/{name.replace('_', '-')}/"] = page.encode()
        return wheel

    def replace_wheel(self, name: str, version: str, files: Mapping[str, str]) -> bytes:
        """List another wheel instead of all of that name."""
        self._wheels.pop(name, None)
        return self.add_wheel(name, version, files)

    def add_npm(self, name: str, version: str, files: Mapping[str, str], **about: object) -> bytes:
        """List an npm package with this `package.json` and files; returns its archive."""
        manifest = {"name": name, "version": version, **about}
        archive = build_npm(manifest, files)
        path = f"/{name}/-/{name.rpartition('/')[2]}-{version}.tgz"
        self.files[path] = archive
        digest = base64.b64encode(hashlib.sha512(archive).digest()).decode()
        known = self._packages.setdefault(name, {"name": name, "dist-tags": {}, "versions": {}})
        dist = {"tarball": self.url + path, "integrity": f"sha512-{digest}"}
        known["versions"][version] = {**manifest, "dist": dist}
        known["dist-tags"]["latest"] = version
        self.files[f"/{name}"] = json.dumps(known).encode()
        return archive


def build_wheel(name: str, version: str, files: Mapping[str, str], *needs: str) -> bytes:
    about = f"{name}-{version}.dist-info"
    wants = "".join(f"Requires-Dist: {need}\n" for need in needs)
    wants += "".join(f"Provides-Extra: {extra}\n" for extra in ("more",))
    all_files = {
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{wants}",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/RECORD": "".join(f"{path},,\n" for path in files),
        **{path.replace("ABOUT", about): content for path, content in files.items()},
    }
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for path, content in all_files.items():
            archive.writestr(path, content)
    return stream.getvalue()


def build_npm(manifest: Mapping[str, Any], files: Mapping[str, str]) -> bytes:
    """An archive as `npm pack` makes it."""
    return build_tar(
        {f"package/{path}": content for path, content in files.items()}
        | {"package/package.json": json.dumps(manifest)}
    )


def build_tar(files: Mapping[str, str]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for path, content in files.items():
            info = tarfile.TarInfo(path)
            info.size = len(content.encode())
            archive.addfile(info, io.BytesIO(content.encode()))
    return stream.getvalue()


@contextmanager
def registry() -> Iterator[FakeRegistry]:
    """A registry that answers as long as the block runs."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = unquote(self.path.partition("?")[0])
            made.asked.append(path)
            made.heard.extend(self.headers.values())
            made.open.wait()
            content = made.files.get(path)
            self.send_response(404 if content is None else 200)
            kind = "text/html" if path.startswith("/simple/") else "application/json"
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, *words: object) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made = FakeRegistry(server.server_address[1])
    made.open.set()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        made.open.set()
        server.shutdown()
        server.server_close()
        thread.join()
