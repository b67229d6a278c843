"""A server without Toolwright: its own HTTP client against a real one on loopback."""

from __future__ import annotations

import base64
import gzip
import json
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.images.conftest import Start
from tests.images.host import Host, definition

SOURCE = """
from toolwright import http, tool

@tool
def fetch(path="/ok", method="GET", body=None):
    return http.request(method, path, text=body) if body else http.request(method, path)
"""
CREDENTIALS = [
    {"name": "X-Key", "kind": "apiKey", "location": "header", "parameter": "X-Api-Key"},
    {"name": "q", "kind": "apiKey", "location": "query", "parameter": "api key"},
    {"name": "c", "kind": "apiKey", "location": "cookie", "parameter": "sid"},
    {"name": "b", "kind": "bearer", "location": "header", "parameter": "Authorization"},
    {"name": "u", "kind": "basic", "location": "header", "parameter": "Authorization"},
    {"name": "o", "kind": "oauth2", "location": "header", "parameter": "Authorization"},
]
BASE64 = base64.b64encode("user:pässword".encode()).decode()


class Site(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Page)
        self.seen: list[tuple[str, str, dict[str, str], bytes]] = []
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Page(BaseHTTPRequestHandler):
    server: Site

    def do_GET(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.seen.append((self.command, self.path, headers, self.rfile.read(length)))
        route = self.path.partition("?")[0]
        status, given, body = ROUTES[route](self) if route in ROUTES else (404, {}, b"{}")
        self.send_response(status)
        for name, value in {"content-type": "application/json", **given}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_PUT = do_DELETE = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        return


Reply = tuple[int, dict[str, str], bytes]
LARGE = 17 * 1024 * 1024
ROUTES: dict[str, Callable[[Page], Reply]] = {
    "/ok": lambda page: (200, {}, b'{"ok": true}'),
    "/limited": lambda page: (429, {"retry-after": "9"}, b'{"slow": "down"}'),
    "/gzip": lambda page: (200, {"content-encoding": "gzip"}, gzip.compress(b'{"ok": 1}')),
    "/bomb": lambda page: (200, {"content-encoding": "gzip"}, gzip.compress(b"0" * LARGE)),
    "/large": lambda page: (200, {}, b"0" * LARGE),
    "/moved": lambda page: (302, {"location": "/ok?moved"}, b""),
    "/loop": lambda page: (302, {"location": f"{page.path}x"}, b""),
    "/loopx": lambda page: (302, {"location": "/loop"}, b""),
    "/away": lambda page: (
        302,
        {"location": f"http://localhost:{page.server.server_port}/ok"},
        b"",
    ),
}


@pytest.fixture
def site() -> Iterator[Site]:
    with Site() as site:
        yield site
        site.shutdown()


Serve = Callable[..., Host]


@pytest.fixture
def serve(start: Start, site: Site) -> Serve:
    def served(*security: list[str], base_url: str = "", **environment: str) -> Host:
        host = start(environment=environment)
        tool = definition("fetch", security=list(security))
        base = base_url or site.url
        host.serve_bundle(SOURCE, tool, brokered=False, base_url=base, credentials=CREDENTIALS)
        return host

    return served


def kind(result: dict[str, Any]) -> str:
    return str(result["_meta"]["toolwright/error"]["kind"])


def said(result: dict[str, Any]) -> str:
    return str(result["content"][0]["text"])


def test_it_calls_the_api_itself(serve: Serve, site: Site) -> None:
    result = serve().call("fetch", path="/ok?a=1")
    assert result["structuredContent"] == {"status": 200, "body": {"ok": True}}
    ((method, path, headers, body),) = site.seen
    assert (method, path, body) == ("GET", "/ok?a=1", b"")
    assert headers["host"] == f"127.0.0.1:{site.server_port}"
    assert headers["accept-encoding"] == "identity"
    assert "authorization" not in headers


def test_arguments_are_held_to_the_schema_for_it_where_the_listed_one_is_a_document_s(
    start: Start, site: Site
) -> None:
    host = start()
    path = {"type": "string", "enum": ["/other"]}
    listed = {"type": "object", "properties": {"path": path}, "required": ["path", "body"]}
    taken = {"type": "object", "properties": {"path": {"type": "string"}}}
    tool = definition("fetch", input_schema=listed, accepted_schema=taken)
    host.serve_bundle(SOURCE, tool, brokered=False, base_url=site.url)
    assert host.call("fetch", path="/ok")["structuredContent"]["status"] == 200
    assert kind(host.call("fetch", path=5)) == "arguments"


def test_a_body_is_sent_with_its_length(serve: Serve, site: Site) -> None:
    host = serve()
    host.call("fetch", method="POST", body="é")
    host.call("fetch", method="PUT")
    assert [(seen[3], seen[2]["content-length"]) for seen in site.seen] == [
        ("é".encode(), "2"),
        (b"", "0"),
    ]


@pytest.mark.parametrize(
    ("scheme", "variable", "secret", "place", "value"),
    [
        ("X-Key", "SAMPLE_X_KEY", "k1", "x-api-key", "k1"),
        ("c", "SAMPLE_C", "k3", "cookie", "sid=k3"),
        ("b", "SAMPLE_B", "k4\n", "authorization", "Bearer k4"),
        ("u", "SAMPLE_U", "user:pässword", "authorization", f"Basic {BASE64}"),
    ],
)
def test_a_credential_comes_from_the_environment(
    serve: Serve, site: Site, scheme: str, variable: str, secret: str, place: str, value: str
) -> None:
    serve([scheme], **{variable: secret}).call("fetch")
    assert site.seen[0][2][place] == value


def test_a_credential_may_be_part_of_the_query(serve: Serve, site: Site) -> None:
    host = serve(["q"], SAMPLE_Q="a&b")
    host.call("fetch")
    host.call("fetch", path="/ok?x=1")
    assert [seen[1] for seen in site.seen] == ["/ok?api%20key=a%26b", "/ok?x=1&api%20key=a%26b"]


def test_the_first_alternative_that_the_environment_holds_is_used(serve: Serve, site: Site) -> None:
    serve(["o"], ["X-Key", "b"], ["X-Key", "c"], SAMPLE_X_KEY="k", SAMPLE_C="s").call("fetch")
    headers = site.seen[0][2]
    assert (headers["x-api-key"], headers["cookie"]) == ("k", "sid=s")
    assert "authorization" not in headers


def test_an_api_that_allows_it_is_called_without_a_credential(serve: Serve, site: Site) -> None:
    assert "isError" not in serve(["b"], []).call("fetch")
    assert "authorization" not in site.seen[0][2]


def test_a_missing_credential_is_refused_naming_the_variable(serve: Serve, site: Site) -> None:
    result = serve(["b"], ["X-Key", "c"]).call("fetch")
    assert kind(result) == "refused"
    assert "set SAMPLE_B in the environment, or set SAMPLE_X_KEY and SAMPLE_C" in said(result)
    assert site.seen == []


def test_a_credential_of_another_kind_is_refused_saying_so(serve: Serve, site: Site) -> None:
    result = serve(["o"], SAMPLE_O="token").call("fetch")
    assert kind(result) == "refused"
    assert "o (oauth2) works only under Toolwright" in said(result)
    assert site.seen == []


def test_a_secret_with_a_line_break_is_refused_and_not_shown(serve: Serve, site: Site) -> None:
    result = serve(["b"], SAMPLE_B="one\r\nX-Evil: two").call("fetch")
    assert kind(result) == "refused"
    assert "one" not in said(result).replace("holds a control", "")
    assert site.seen == []


def test_no_other_origin_is_called_and_no_credential_goes_there(serve: Serve, site: Site) -> None:
    host = serve(["b"], SAMPLE_B="k")
    for url in (f"http://localhost:{site.server_port}/ok", "https://127.0.0.1/ok"):
        assert kind(host.call("fetch", path=url)) == "refused"
    for url in (f"http://evil@127.0.0.1:{site.server_port}/ok", "http://127.0.0.1:x/ok"):
        assert kind(host.call("fetch", path=url)) == "refused"
    assert site.seen == []


def test_the_base_url_can_be_replaced(serve: Serve, site: Site) -> None:
    host = serve(base_url="https://api.invalid/v1", TOOLWRIGHT_BASE_URL=site.url)
    assert host.call("fetch")["structuredContent"]["body"] == {"ok": True}


def test_an_error_is_told_as_with_a_broker(serve: Serve) -> None:
    result = serve().call("fetch", path="/limited")
    assert result["_meta"]["toolwright/error"] == {"kind": "http", "status": 429, "retry_after": 9}
    assert '{"slow": "down"}' in said(result)


def test_a_redirect_is_followed_only_for_reads_within_the_origin(serve: Serve, site: Site) -> None:
    host = serve(["b"], SAMPLE_B="k")
    assert host.call("fetch", path="/moved")["structuredContent"]["body"] == {"ok": True}
    assert [seen[1] for seen in site.seen] == ["/moved", "/ok?moved"]
    for path, method in (("/moved", "POST"), ("/away", "GET"), ("/loop", "GET")):
        site.seen.clear()
        result = host.call("fetch", path=path, method=method)
        assert result["_meta"]["toolwright/error"]["status"] == 302
        assert len(site.seen) == (4 if path == "/loop" else 1)


def test_answers_are_unpacked_and_bounded(serve: Serve) -> None:
    host = serve()
    assert host.call("fetch", path="/gzip")["structuredContent"]["body"] == {"ok": 1}
    assert kind(host.call("fetch", path="/large")) == "too_large"
    assert kind(host.call("fetch", path="/bomb")) == "too_large"


def test_an_api_that_is_not_there_is_unreachable(serve: Serve, site: Site) -> None:
    closed = Site()
    closed.shutdown()
    closed.server_close()
    assert kind(serve(base_url=closed.url).call("fetch")) == "unreachable"
    assert kind(serve(base_url="https://name.invalid").call("fetch")) == "unreachable"
    assert kind(serve(base_url=site.url.replace("http:", "https:")).call("fetch")) == "unreachable"


def test_a_certificate_that_nobody_vouches_for_is_refused(
    start: Start, site: Site, tmp_path: Path
) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*made, *names, *files], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with Site() as secure:
        secure.socket = context.wrap_socket(secure.socket, server_side=True)
        base = secure.url.replace("http:", "https:")
        outcomes = []
        for environment in ({}, {"SSL_CERT_FILE": str(certificate)}):
            host = start(environment=environment)
            host.serve_bundle(SOURCE, definition("fetch"), brokered=False, base_url=base)
            outcomes.append(host.call("fetch"))
        secure.shutdown()
    assert kind(outcomes[0]) == "unreachable"
    assert "CERTIFICATE_VERIFY_FAILED" in said(outcomes[0])
    assert outcomes[1]["structuredContent"]["body"] == {"ok": True}
    assert len(secure.seen) == 1


def test_the_client_s_modules_are_loaded_only_where_it_is_used(start: Start) -> None:
    source = (
        "import sys\nfrom toolwright import tool\n@tool\ndef loaded():\n"
        "    names = ('ssl', 'http.client', 'socket', 'urllib.parse', 'asyncio', 'typing')\n"
        "    return [name for name in names if name in sys.modules]\n"
    )
    host = start()
    host.serve_bundle(source, definition("loaded"))
    assert host.call("loaded")["structuredContent"] == {"result": []}
    assert json.dumps(host.asked) == "[]"
