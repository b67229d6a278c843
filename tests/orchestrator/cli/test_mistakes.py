"""Typical mistakes at a terminal: each says what is wrong, with what, and what to type next."""

from __future__ import annotations

import datetime
import errno
import json
import resource
import shlex
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner, Result

from orchestrator.approvals import granting
from orchestrator.approvals.sending import render_outcome
from orchestrator.cli.commands.compile import replace_bundle
from orchestrator.cli.commands.do import NO_TOOL, is_without_tool
from orchestrator.cli.main import COMMANDS, toolwright
from orchestrator.cli.preparation import TRIES, read_new_pin
from orchestrator.cli.terminal import WAITING
from orchestrator.cli.tools.argument_hint import render_arguments, render_example_call
from orchestrator.errors import OrchestratorError
from orchestrator.settings import Settings, load_settings
from registry.errors import DiskUnusable
from registry.secrets.pin import ATTEMPTS, set_pin, verify_pin
from registry.store import Store
from sandbox.errors import EngineUnavailable
from tests.registry.samples import REPORTS, approval, bundle, entry, invocation, tool
from tests.world.network import tls_server
from tests.world.site import Page, site

PIN = "correct horse"
FILES = {
    "pin": PIN,
    "wrong": "another one",
    "page.html": "<!doctype html><html><body>Hello</body></html>",
    "broken.yaml": "openapi: 3.0.0\ninfo: {title: x\npaths: {}",
    "list.json": "[]",
    "none.json": '{"openapi": "3.1.0", "info": {"title": "N", "version": "1"}, "paths": {}}',
    "tab.yaml": "openapi: 3.0.0\ninfo:\n\ttitle: x\npaths: {}\n",
    "empty.json": "",
    "far.json": '{"openapi": "3.1.0", "info": {"title": "Far", "version": "1"}, "servers": '
    '[{"url": "https://far.test"}], "paths": {"/x": {"get": {"responses": {"200": '
    '{"description": "ok"}}}}}}',
}
NO_ENGINE = "unix:///nonexistent/docker.sock"
OBJECT = """'{"name": "example.org"}'"""
MISTAKES = [
    # what was typed, where the mistake is, what to do next
    ("frge x", "'frge'", "Did you mean forge"),
    ("lst", "'lst'", "Did you mean list"),
    ("aprovals", "'aprovals'", "Did you mean approvals"),
    ("xyzzy", "'xyzzy'", "toolwright --help"),
    ("kill --now", "'--now'", "toolwright kill --help"),
    ("show", "'NAME'", "toolwright show --help"),
    ("find", "'TASK'", "toolwright find --help"),
    ("forge", "'TASK'", "toolwright forge --help"),
    ("do", "Give a TASK", "--run"),
    ("compile ./x.json", "'--out'", "toolwright compile --help"),
    ("audit archive", "'--before'", "toolwright audit archive --help"),
    ("classify dns.list_zones maybe", "'maybe'", "'read', 'write', 'destructive'"),
    ("completion tcsh", "'tcsh'", "'bash', 'zsh', 'fish'"),
    ("setup --client nothere", "'nothere'", "'claude-code'"),
    ("serve --url", "--url", "--http"),
    ("approve a1 --where x=1", "--where", "--always"),
    ("show dnss", "'dnss'", "Did you mean dns?"),
    ("versions nothere", "'nothere'", "toolwright list"),
    ("remove nothere", "'nothere'", "toolwright list"),
    ("archive nothere", "'nothere'", "toolwright list"),
    ("export nothere", "'nothere'", "toolwright list"),
    ("reprove nothere", "'nothere'", "toolwright list"),
    ("logs nothere", "'nothere'", "toolwright list"),
    ("grant nothere requests:5", "'nothere'", "toolwright list"),
    ("run nothere", "'nothere'", "toolwright list"),
    ("login nothere", "'nothere'", "toolwright list"),
    ("accounts nothere", "'nothere'", "toolwright list"),
    ("remove dns", "dns", "toolwright archive dns"),
    ("rollback dns 7", "'dns 7'", "toolwright versions"),
    ("diff dns 1 9", "'dns 9'", "toolwright versions"),
    ("call dns", "'dns' is a server", "toolwright show dns"),
    ("call dns.list_zones --name x", "--name", "toolwright call dns.list_zones name=x"),
    ("show dns --versoin 3", "--versoin", "toolwright versions dns"),
    ("call dns.list_zone", "'dns.list_zone'", "Did you mean dns.list_zones"),
    ("call dnss.list_zones", "'dnss.list_zones'", "Did you mean dns.list_zones"),
    ("call dns.list_zones notjson", "'notjson' is not JSON", OBJECT),
    ("call dns.list_zones nmae=1", "'nmae'", "Did you mean name"),
    ("call dns.list_zones {} name=x", "'{}' is no key=value", "name=example.org"),
    ("call dns.list_zones name=@./nothere", "./nothere cannot be read", "name=@@./nothere"),
    ("call dns.list_zones name=3", "a text or JSON", "name:=3"),
    ("call dns.list_zones name:=x", "name:=", "not JSON"),
    ("call dns.list_zones [1]", "'[1]' is not a JSON object", OBJECT),
    ("approve nothere", "'nothere'", "toolwright approvals --all"),
    ("reject nothere", "'nothere'", "toolwright approvals --all"),
    ("work --approval nothere", "'nothere'", "toolwright approvals --all"),
    ("jobs nothere", "'nothere'", "toolwright jobs"),
    ("allow nothere", "'nothere'", "toolwright jobs"),
    ("submit nothere x.json", "'nothere'", "toolwright jobs"),
    ("rules revoke nothere", "'nothere'", "toolwright rules --all"),
    ("logs --call nothere", "'nothere'", "toolwright logs"),
    ("audit show 99999", "'99999'", "toolwright audit search"),
    ("approve a1", "the PIN is wanted", "--pin-file FILE"),
    ("approve a1 --pin-file ./nothere", "nothere cannot be read", "No such file"),
    ("source add https://x.test --header X-Key=abc", "'X-Key=abc'", "toolwright secret set"),
    ("source add https://x.test --header X-Key=@unset", "unset", "toolwright secret set unset"),
    ("add n --env KEY=@unset -- npx -y some", "unset", "toolwright secret set n.unset"),
    ("add n --env KEY=value -- npx -y some", "KEY=@SECRET", "toolwright secret set"),
    ("add n -- foo bar", "foo is not a way", "npx -y PACKAGE"),
    ("add n", "there is no command", "npx -y PACKAGE"),
    ("grant dns nonsense", "'nonsense'", "network:HOST"),
    ("import-clients nothere", "'nothere'", "toolwright import-clients"),
    ("restore ./nothere", "nothere", "Check the path"),
    ("backup /nothere/x.tgz", "/nothere", "No backup was made"),
    ("control --url", "none is running", "toolwright control"),
    ("push remove nothere", "nothere", "toolwright push list"),
    ("help", "Write", "toolwright --help"),
    ("help forge", "Write", "toolwright forge --help"),
    ("version", "Write", "toolwright --version"),
    ("shw dns", "'shw'", "Did you mean show"),
    ("list --jsn", "'--jsn'", "Did you mean '--json'"),
    ("list extra", "(extra)", "toolwright list --help"),
    ("find zones -k 99", "99", "1<=x<=20"),
    ("logs -n 0", "'-n'", "1<=x<=10000"),
    ("logs --mark-wrong", "--mark-wrong", "toolwright logs"),
    ("jobs --cancel", "JOB", "toolwright jobs"),
    ("jobs --draft x", "'x'", "integer"),
    ("control --port 99999", "99999", "0<=x<=65535"),
    ("forge x --engine dockr", "'dockr'", "'docker', 'wasm'"),
    ("forge x --author nobody", "'nobody'", "'client'"),
    ("forge x --auth nonsense", "nonsense", "header:NAME"),
    ("do x --arguments nojson", "'nojson' is not JSON", OBJECT),
    ("do --run nothere", "'nothere'", "toolwright jobs"),
    ("show dns.nothere", "'dns.nothere'", "toolwright show dns"),
    ("show nothere.list_zones", "'nothere.list_zones'", "Did you mean dns.list_zones"),
    ("call list_zones", "'list_zones'", "Did you mean dns.list_zones"),
    ("call dns.list_zones name=@{place}", "Is a directory", "name=@@"),
    ("call dns.list_zones --task", "'--task'", "requires an argument"),
    ("replay nothere", "'nothere'", "toolwright logs"),
    ("approve a", "'a' may be a slip", "toolwright approve a1"),
    ("reject late", "it has expired", "Call the tool again"),
    ("source allow http://", "'http://'", "HOST:PORT"),
    ("source allow pypi:/", "'pypi:/'", "pypi:NAME"),
    ("source add ftp://x/", "ftp://x/", "https://host/"),
    ("secret set n.x --value-file ./nothere", "nothere", "No such file"),
    ("secret set dns", "dns is a server", "dns.NAME"),
    ("secret set .token", "'.token' is no name", "SERVER.NAME"),
    ("secret bind dns.", "'dns.' is no name", "SERVER.NAME"),
    ("secret set dns.x --auth header", "--auth header says no place", "toolwright secret set"),
    ("control --host 192.0.2.1", "no address of this machine", "--host"),
    ("forge {place}", "{place}: it is a directory", "path or URL"),
    ("forge ftp://x.test/y", "only http and https", "path or URL"),
    (
        "forge http://me:pw@x.test/y",
        "Nothing was stored",
        "toolwright forge http://x.test/y --auth",
    ),
    ("forge ''", "Give a TASK", "the API's URL"),
    ("forge http//localhost:9/x", "neither a file nor an address", "http://HOST:PORT/PATH"),
    ("forge http:/localhost:9/x", "neither a file nor an address", "http://HOST:PORT/PATH"),
    ("forge http://localhost:99999", "neither a file nor an address", "at most 65535"),
    ("forge localhost:9x", "neither a file nor an address", "--source none"),
    ("forge zonesapi:8081", "zonesapi:8081", "toolwright allow"),
    ("forge {place}/page.html", "a web page", "Give an OpenAPI document"),
    ("forge x --source http:/localhost:9/x", "nor a host", "http://HOST:PORT/PATH"),
    ("forge {place}/nothere.sh", "no such file", "path or URL"),
    ("forge x --source {place}/none.json", "the document lists none", "`paths`"),
    ("approve a1 --pin-file {place}/wrong", "not the PIN", "nothing was changed"),
    ("source allow x.test:443 --pin-file {place}/wrong", "not the PIN", "nothing was changed"),
    ("source allow nothost --pin-file {place}/pin", "'nothost'", "HOST:PORT"),
    ("source allow ./nothere --pin-file {place}/pin", "nothere", "plain directory or file"),
    ("source add nonsense --pin-file {place}/pin", "nonsense", "https://host/"),
    ("secret set n.x --value-file ./nothere --pin-file {place}/pin", "nothere", "No such file"),
    ("secret bind key --pin-file {place}/pin", "key is no server's", "toolwright source add"),
    ("secret set x --auth bearer", "--auth", "SERVER.x"),
    ("grant dns network:x.test:443", "network:x.test:443", "It declares: network:api.example"),
    ("grant dns requests:x", "'requests:x'", "requests:NUMBER"),
    ("grant dns fs:relative:ro", "'relative'", "/srv/data"),
    ("audit search --since notaday", "'notaday'", "2026-11-27"),
    ("audit archive --before yesterday", "'yesterday'", "2026-11-27"),
    ("reprove --since notaday", "'notaday'", "2026-01-31"),
    ("audit export {place}/pin", "is there already", "another file"),
    ("audit export /nothere/x.jsonl", "/nothere/x.jsonl", "Check the path"),
    ("backup {place}/pin", "is there already", "--force"),
    ("restore {place}/pin", "it is no backup", "toolwright backup FILE"),
    ("restore {place}/pin --check", "is not restored", "The home is as it was"),
    ("push test nothere --pin-file {place}/pin", "nothere", "toolwright push list"),
    ("push add nonsense --pin-file {place}/pin", "URL", "ntfy://TOPIC"),
    ("login ./x", "./x", "toolwright login https://"),
    (
        "login https://me:pw@x.test",
        "`URL` holds a user name or password",
        "toolwright secret set NAME",
    ),
    ("logout https://x.test", "https://x.test", "toolwright source list"),
    ("classify dns read", "'dns'", "server.tool"),
    ("run", "'DIR|NAME'", "toolwright run --help"),
    ("add n -- npx", "npx names no package", "npx -y PACKAGE"),
    ("add n --allow ho/st -- npx -y some", "ho/st", "HOST"),
    ("images rebuild", "no container engine answers", "Start Docker"),
    ("setup --engine-only --engine docker", "no container engine answers", "--engine wasm"),
    ("compile {place}/nothere.json --out {place}/o", "no such file", "path or URL"),
    ("compile {place}/page.html --out {place}/o", "a web page", "path or URL"),
    ("compile {place}/broken.yaml --out {place}/o", "line 3, column 6", "JSON or YAML"),
    ("compile {place}/list.json --out {place}/o", "list.json", "Give an OpenAPI document"),
    ("compile {place}/list.json --out {place}", "is no bundle", "--out"),
    ("compile http://127.0.0.1:9/x --out {place}/o", "private address", "--allow-private"),
    ("compile http://127.0.0.1:9/x --out {place}/o --allow-private", "refused", "Check the addr"),
    ("compile {place}/tab.yaml --out {place}/o", "line 3, column 1 (a tab", "spaces"),
    ("compile {place}/empty.json --out {place}/o", "empty.json", "downloaded completely"),
    ("compile {place} --out {place}/o", "is a directory", "path or URL"),
    ("compile {place}/far.json --out /proc/nothere", "/proc/nothere", "No such file"),
    ("compile http://nothere.invalid/x --out {place}/o", "does not resolve", "Check the address"),
    ("grant dns requests:5", "'requests:5'", "101 to 10000"),
    ("forge {place}/nothere.json", "no such file", "path or URL"),
    ("forge x --source {place}/tab.yaml", "(a tab", "spaces"),
    ("forge x --source {place}/empty.json", "empty.json", "downloaded completely"),
    ("forge x --source {place}", "{place}: ", "path or URL"),
    ("forge x --source {place}/page.html", "a web page", "Give an OpenAPI document"),
    ("forge http://nothere.invalid/x", "nothere.invalid:80", "toolwright allow"),
    ("forge http://localhost:9/x", "nothing listens there", "Check the address"),
    ("forge x --name dns", "a server dns already", "another name"),
    ("forge x --source {place}/far.json --name Bad/Name", "'Bad/Name'", "lower-case"),
    ("forge x --source {place}/far.json --name push", "push", "Choose another"),
    (
        "forge x --source {place}/far.json --name dns",
        "succession dns version 2",
        "toolwright allow",
    ),
    ("add dns --pin-file {place}/pin -- npx -y some", "dns is a server", "another name"),
    ("approve late --pin-file {place}/pin", "it has expired", "Call the tool again"),
]
STATES = [
    # the state of the home, what was typed, where the mistake is, what to do next
    ("no PIN", "approve a1", "no PIN is set", "toolwright setup"),
    ("no PIN", "reject a1 --pin-file {place}/pin", "no PIN is set", "toolwright setup"),
    ("no PIN", "source allow x.test:443", "no PIN is set", "toolwright setup"),
    ("no PIN", "grant dns requests:500", "no PIN is set", "toolwright setup"),
    ("no PIN", "secret set x --value-file {place}/pin", "no PIN is set", "toolwright setup"),
    ("no PIN", "push add ntfy://x", "no PIN is set", "toolwright setup"),
    ("locked", "approve a1 --pin-file {place}/pin", "too many wrong PINs", "try again in"),
    ("locked", "reject a1 --pin-file {place}/wrong", "too many wrong PINs", "try again in"),
    ("clock", "approve a1 --pin-file {place}/pin", "too many wrong PINs", "try again in 60 s"),
    ("frozen", "forge http://localhost:9/x", "is frozen", "toolwright unfreeze"),
    ("frozen", "add n --pin-file {place}/pin -- npx -y some", "is frozen", "toolwright unfreeze"),
    ("frozen", "unfreeze", "the PIN is wanted", "--pin-file FILE"),
    ("frozen", "unfreeze --pin-file {place}/wrong", "not the PIN", "nothing was changed"),
    ("frozen", "replay nothere", "is frozen", "toolwright unfreeze"),
    ("frozen", "work --approval a1", "is frozen", "toolwright unfreeze"),
    ("frozen", "login https://x.test --pin-file {place}/pin", "is frozen", "toolwright unfreeze"),
    ("frozen", "do berths", "is frozen", "toolwright unfreeze"),
    ("a file", "list", "/home", "TOOLWRIGHT_HOME"),
    ("a file", "approve a1 --pin-file {place}/pin", "/home", "TOOLWRIGHT_HOME"),
    ("a file", "jobs 7c1e", "/home", "TOOLWRIGHT_HOME"),
    ("unwritable", "list", "/proc/nothere", "TOOLWRIGHT_HOME"),
    ("unwritable", "setup --pin-file {place}/pin", "/proc/nothere", "TOOLWRIGHT_HOME"),
    ("damaged", "list", "toolwright.db", "toolwright restore"),
    ("damaged", "approve a1", "toolwright.db", "toolwright restore"),
    ("newer", "list", "newer Toolwright", "Upgrade Toolwright"),
    ("newer", "approve a1", "newer Toolwright", "Upgrade Toolwright"),
    ("newer", "backup {place}/b.tgz", "newer Toolwright", "Upgrade Toolwright"),
    ("bad PIN file", "approve a1 --pin-file {place}/pin", "pin.json", "toolwright setup"),
    ("bad vault", "secret list", "vault.json", "restore the file"),
    ("full disk", "list", "toolwright.db", "free space"),
    ("full disk", "approve a1 --pin-file {place}/pin", "toolwright.db", "free space"),
    ("full disk", "source allow x.test:443 --pin-file {place}/pin", "too large", "Free space"),
    ("full disk", "secret set x --value-file {place}/pin", "toolwright.db", "free space"),
    ("full disk", "backup {place}/b.tgz", "toolwright.db", "free space"),
]
ANSWERS = {
    "/page": Page(b"<!doctype html><html><body>Hello</body></html>"),
    "/odata/$metadata": Page(b"<!doctype html><html><body>Hello</body></html>"),
    "/locked": Page(b"", 401, (("WWW-Authenticate", "Bearer"),)),
    "/tab": Page(FILES["tab.yaml"].encode()),
    "/empty": Page(b""),
}
FETCHES = [
    # what the API answers, where the mistake is, what to do next
    ("compile {site}/page", "/page: it is a web page", "path or URL"),
    ("compile {site}/locked", "HTTP 401", "toolwright forge"),
    ("compile {site}/nothere", "HTTP 404", "Check the address"),
    ("compile {site}/tab", "line 3, column 1 (a tab", "spaces"),
    ("compile {site}/empty", "/empty: the document is empty", "downloaded completely"),
    ("compile {tls}/x", "TLS certificate is refused: self-signed", "SSL_CERT_FILE"),
    ("compile {later}/x", "certificate is not yet valid", "this machine's clock says"),
    ("compile {ended}/x", "certificate has expired", "this machine's clock says"),
    ("compile {plain}/x", "does not speak TLS at that port", "is http:// meant"),
    ("forge {site}/locked", "asks for a credential (401)", "toolwright source add"),
    ("forge {site}/odata/$metadata", "/odata/$metadata: HTTP 200, a page", "Give another source"),
    ("forge {site}/page", "/page: HTTP 200, a page", "Give another source"),
]


STATE_NAMES = {state for state, _, _, _ in STATES}
TOOLS = (
    tool("list_zones", parameters={"name": "The name of the zone"}),
    tool("create_zone", access="write"),
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """A home with a server and a request that waits. None of the mistakes changes it."""
    settings = make_home(tmp_path_factory.mktemp("mistakes"))
    allow_host(settings, "localhost:9")
    with Store.open(settings.database_url) as store:
        yield settings
        assert store.approvals.get("a1").state == "pending"
        assert [each.state for each in store.servers.find_summaries()] == ["active"]
        assert store.grants.find_grants("permission") == ()


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Homes in which something is the matter, by what it is. What is typed changes none."""
    return {state: spoil_home(tmp_path_factory.mktemp("home"), state) for state in STATE_NAMES}


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Servers by what is wrong with them."""
    now, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
    places = {name: tmp_path_factory.mktemp(name) for name in ("tls", "later", "ended")}
    with (
        site(ANSWERS) as here,
        tls_server(places["tls"]) as tls,
        tls_server(places["later"], "localhost", now + day, now + 2 * day) as later,
        tls_server(places["ended"], "localhost", now - 2 * day, now - day) as ended,
    ):
        ports = {"tls": tls, "later": later, "ended": ended}
        found = {name: f"https://localhost:{port}" for name, port in ports.items()}
        found["plain"] = here.url.replace("http:", "https:")
        yield {"site": here.url, **found, **{f"{n}.pem": str(p) for n, p in places.items()}}


def make_home(place: Path) -> Settings:
    settings = load_settings({"TOOLWRIGHT_HOME": str(place / "home")})
    set_pin(settings.pin, PIN, cost=2**4)
    for name, text in FILES.items():
        (place / name).write_text(text)
    now = time.time()
    with Store.open(settings.database_url) as store:
        store.servers.publish(entry("dns", 1, *TOOLS), REPORTS, now=now)
        store.approvals.add_pending(replace(approval(), created=now, expires=now + 3600))
        late = replace(approval(), id="late", created=now - 7200, expires=now - 3600)
        store.approvals.add_pending(late)
    return settings


def allow_host(settings: Settings, host: str) -> None:
    signer = verify_pin(settings.pin, PIN, time.time()).signer
    assert signer is not None
    with Store.open(settings.database_url) as store:
        granting.allow_host(store.grants, host, "test", signer)


def spoil_home(place: Path, state: str) -> Path:
    """A home that is as the state says."""
    if state == "unwritable":
        return Path("/proc/nothere")
    settings = make_home(place)
    if state == "no PIN":
        settings.pin.unlink()
    elif state == "locked":
        for _ in range(ATTEMPTS):
            verify_pin(settings.pin, "another one", time.time())
    elif state == "clock":
        a_year_ahead = time.time() + 365 * 86400
        for _ in range(ATTEMPTS):
            verify_pin(settings.pin, "another one", a_year_ahead)
    elif state == "frozen":
        allow_host(settings, "localhost:9")
        with Store.open(settings.database_url) as store:
            store.processes.freeze(time.time(), "test")
    elif state == "a file":
        shutil.rmtree(settings.home)
        settings.home.write_text("")
    elif state == "damaged":
        (settings.home / "toolwright.db").write_bytes(b"no database" * 1000)
    elif state == "newer":
        with closing(sqlite3.connect(settings.home / "toolwright.db")) as database, database:
            database.execute("UPDATE alembic_version SET version_num = '9999_later'")
    elif state == "bad PIN file":
        settings.pin.write_text("{")
    elif state == "bad vault":
        (settings.home / "vault.json").write_text("{")
    return settings.home


@contextmanager
def leave_no_space() -> Iterator[None]:
    """Let no file of this process grow: the system refuses it as it does on a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def check_mistake(home: Path, place: Path, typed: str, wrong: str, then: str, **more: str) -> None:
    """Type it, and find in what comes what is wrong and what to do next."""
    given = {
        "TOOLWRIGHT_HOME": str(home),
        "TOOLWRIGHT_VAULT_KEY_FILE": str(place / "vault.key"),
        "COLUMNS": "200",
        "DOCKER_HOST": NO_ENGINE,
        "HOME": str(place),
    }
    words = shlex.split(typed.replace("{place}", str(place)))
    told = CliRunner().invoke(toolwright, words, env=given | more, catch_exceptions=False)
    said = f"{told.stdout}{told.stderr}" if words[0] == "forge" else told.stderr
    assert told.exit_code in (1, 2, WAITING)
    assert wrong.replace("{place}", str(place)) in said
    assert then in said
    assert "Traceback" not in told.output
    assert "[Errno" not in told.output


@pytest.mark.parametrize(("typed", "wrong", "then"), MISTAKES)
def test_a_mistake_says_what_is_wrong_and_what_to_do_next(
    home: Settings, typed: str, wrong: str, then: str
) -> None:
    check_mistake(home.home, home.home.parent, typed, wrong, then)


@pytest.mark.parametrize(("state", "typed", "wrong", "then"), STATES)
def test_a_home_that_cannot_serve_says_why_and_what_to_do_next(
    homes: dict[str, Path], state: str, typed: str, wrong: str, then: str
) -> None:
    home = homes[state]
    place = homes["frozen"].parent
    with leave_no_space() if state == "full disk" else nullcontext():
        check_mistake(home, place, typed, wrong, then)


@pytest.mark.parametrize(("typed", "wrong", "then"), FETCHES)
def test_an_address_that_gives_no_description_says_why_and_what_to_do_next(
    home: Settings, addresses: dict[str, str], typed: str, wrong: str, then: str
) -> None:
    for name, address in addresses.items():
        typed = typed.replace(f"{{{name}}}", address)
    host = urlsplit(typed.split()[1]).netloc
    trusted = next((n for n in ("later", "ended") if addresses[n].endswith(host)), "")
    more = {"SSL_CERT_FILE": f"{addresses[f'{trusted}.pem']}/peer.pem"} if trusted else {}
    if typed.startswith("forge"):
        allow_host(home, host)
    else:
        typed += " --allow-private --out {place}/o"
    check_mistake(home.home, home.home.parent, typed, wrong, then, **more)


def test_a_write_that_is_approved_while_all_is_frozen_names_the_way_to_have_it_sent(
    tmp_path: Path,
) -> None:
    home = spoil_home(tmp_path, "frozen")
    words = ["approve", "a1", "--pin-file", str(tmp_path / "pin")]
    given = {"TOOLWRIGHT_HOME": str(home), "COLUMNS": "200"}
    told = CliRunner().invoke(toolwright, words, env=given, catch_exceptions=False)
    assert "a1: approved, not sent yet; `toolwright unfreeze`, then `toolwright work" in told.stdout


def run_words(home: Path, *words: str) -> Result:
    given = {"TOOLWRIGHT_HOME": str(home), "COLUMNS": "200", "DOCKER_HOST": NO_ENGINE}
    return CliRunner().invoke(toolwright, words, env=given, catch_exceptions=False)


def test_nothing_frozen_is_told_without_a_pin(home: Settings) -> None:
    told = run_words(home.home, "unfreeze")
    assert (told.exit_code, told.stdout) == (0, "Nothing is frozen.\n")


def test_a_search_that_finds_nothing_says_what_to_do_next(home: Settings) -> None:
    told = run_words(home.home, "audit", "search", "Fernn")
    assert "Nothing found. `toolwright audit search`" in told.stdout


def test_a_search_for_what_no_tool_is_like_lists_none(home: Settings) -> None:
    told = run_words(home.home, "find", "qwertz uiop zxcvb")
    assert told.stdout.startswith("No registered tool fits.")


def test_the_beginning_of_an_id_is_enough_for_its_audit(tmp_path: Path) -> None:
    settings = make_home(tmp_path)
    with Store.open(settings.database_url) as store:
        now = time.time()
        store.approvals.add_pending(
            replace(approval(), id="59bb040abfbba12b", created=now, expires=now + 3600)
        )
    shown = json.loads(run_words(settings.home, "audit", "show", "59bb").stdout)
    assert shown["approval"]["approval"] == "59bb040abfbba12b"
    short = run_words(settings.home, "approve", "59")
    assert "at least 3 characters" in short.stderr
    assert "`toolwright approve 59bb040abfbba12b`" in short.stderr
    assert "the PIN is wanted" in run_words(settings.home, "approve", "59b").stderr


def test_a_call_is_marked_wrong_once_and_what_that_does_is_told_in_a_line(tmp_path: Path) -> None:
    settings = make_home(tmp_path)
    with Store.open(settings.database_url) as store:
        store.calls.record(invocation("c123"), time.time())
    told = run_words(settings.home, "logs", "--call", "c123", "--mark-wrong").stdout
    assert told.startswith("c123 (dns.list_zones) is marked wrong and counts as a failure.")
    assert "1 of 1 calls right before, 0 now" in told
    again = run_words(settings.home, "logs", "--call", "c123", "--mark-wrong").stdout
    assert "was marked already" in again


def test_what_was_approved_and_expired_unsent_is_told(tmp_path: Path) -> None:
    settings = make_home(tmp_path)
    now = time.time()
    with Store.open(settings.database_url) as store:
        waits = replace(approval(), id="lost", created=now - 60, expires=now - 1)
        store.approvals.add_pending(waits)
        store.approvals.decide("lost", True, by="me", now=now - 30, signed="x")
        store.approvals.expire_overdue(now)
    told = run_words(settings.home, "doctor").stdout
    assert "1 approved and expired unsent: lost" in told
    assert "call the tools again" in told


def test_a_short_pin_is_asked_for_again(tmp_path: Path) -> None:
    runner = CliRunner()
    with runner.isolation("short\nshort\nlong enough\nlong enough\n"):
        assert read_new_pin(None) == "long enough"
    with runner.isolation("a\n" * 2 * TRIES):
        assert read_new_pin(None) == "a"


def test_the_one_argument_of_a_tool_is_offered_as_a_word(tmp_path: Path) -> None:
    settings = make_home(tmp_path)
    wanted = tool("get_zone", parameters={"zone_id": "The id of the zone"})
    schema = {**wanted.definition["inputSchema"], "required": ["zone_id"]}
    listed = replace(wanted, listed=json.dumps({**wanted.definition, "inputSchema": schema}))
    with Store.open(settings.database_url) as store:
        store.servers.publish(entry("mail", 1, listed), REPORTS, now=time.time())
    told = run_words(settings.home, "call", "mail.get_zone", "3")
    assert "`toolwright call mail.get_zone zone_id=3`" in told.stderr


def test_a_tool_that_is_not_there_is_told_before_what_its_arguments_may_be(tmp_path: Path) -> None:
    told = run_words(make_home(tmp_path).home, "call", "dns.zones", "limit=3")
    assert "there is no tool 'dns.zones'" in told.stderr
    assert "JSON" not in told.stderr


def test_line_ends_of_an_answer_are_blanks_in_the_message_of_an_approval() -> None:
    outcome = {"error": "HTTP 422 Unprocessable Content\n\n{}\x1b[31m"}
    told = render_outcome(replace(approval(), state="failed", outcome=outcome))
    assert told == "failed: HTTP 422 Unprocessable Content {}\\u{1b}[31m"


def test_there_are_a_hundred_and_each_command_they_name_is_there() -> None:
    assert len({typed for typed, _, _ in MISTAKES}) >= 100
    rows = (*MISTAKES, *FETCHES, *(row[1:] for row in STATES))
    named = {then.split()[1] for _, _, then in rows if then.startswith("toolwright ")}
    assert named - {"--help", "--version"} <= COMMANDS.keys()


def test_a_call_without_what_its_tool_wants_comes_with_its_arguments_and_an_example() -> None:
    schema = {
        "properties": {
            "page": {"type": "integer"},
            "server_id": {
                "type": "string",
                "description": "The id of \x1b[31mthe server",
                "examples": ["localhost"],
            },
        },
        "required": ["server_id"],
    }
    assert render_arguments("powerdns.list_zones", schema) == [
        "powerdns.list_zones takes:",
        "  server_id (string, required): The id of \\u{1b}[31mthe server",
        "  page (integer)",
        "For example: toolwright call powerdns.list_zones server_id=localhost",
    ]
    for hostile in ({}, {"properties": 7}, {"properties": {"a": 7}, "required": ["a", 7]}):
        assert render_arguments("x.y", hostile)[0] == "x.y takes:"


def test_an_example_call_shows_members_of_a_body() -> None:
    name = {"name": {"type": "string"}}
    body: dict[str, Any] = {"type": "object", "properties": {**name, "ttl": {"type": "integer"}}}

    def example(inner: dict[str, Any]) -> str:
        schema = {"properties": {"body": inner}, "required": ["body"]}
        return render_example_call("a.b", schema).removeprefix("toolwright call a.b ")

    assert example({**body, "required": ["ttl"]}) == "body.ttl=1"
    # What an `allOf` requires beside the part that has the properties.
    assert example({"allOf": [body, {"required": ["ttl"]}]}) == "body.ttl=1"
    # Nothing is required: what could be set, and never what the API sets itself.
    own = {"id": {"type": "string", "readOnly": True}}
    assert example({**body, "properties": {**own, **body["properties"]}}) == (
        "body.name=text body.ttl=1"
    )
    listed = {"type": "array", "items": {**body, "required": ["name"]}}
    assert example(listed) == """'body=[{"name":"text"}]'"""
    assert example({"type": "object"}) == "'body={}'"


def test_a_task_that_no_tool_fits_names_a_command_and_no_tool_of_a_client() -> None:
    assert is_without_tool({"state": "suggested", "candidates": []})
    assert not is_without_tool({"state": "suggested", "candidates": [{"tool": "a.b"}]})
    assert not is_without_tool({"state": "called"})
    assert "toolwright forge" in NO_TOOL
    assert "tool=none" not in NO_TOOL


def test_without_docker_it_is_named_with_what_runs_meanwhile() -> None:
    told = str(EngineUnavailable("it does not answer"))
    for said in ("Start Docker", "--engine wasm", "./scripts/test --install-engine"):
        assert said in told


@pytest.mark.parametrize(
    ("number", "then"),
    [(errno.ENOSPC, "Free space"), (errno.EACCES, "permissions"), (errno.ENOENT, "Check the path")],
)
def test_an_error_of_the_system_has_the_remedy_that_fits(
    number: int, then: str, tmp_path: Path
) -> None:
    told = str(DiskUnusable(OSError(number, "so it is", str(tmp_path))))
    assert (then in told, str(tmp_path) in told) == (True, True)
    assert ("Free space" in told) == (number == errno.ENOSPC)


def test_a_bundle_that_a_full_disk_refuses_is_told_with_what_to_do_next(tmp_path: Path) -> None:
    out = tmp_path / "out" / "bundle"
    with leave_no_space(), pytest.raises(OrchestratorError) as refused:
        replace_bundle(bundle(), out)
    told = str(refused.value)
    assert "cannot be written: File too large. Free space on that disk" in told
    assert told.endswith("or name another place as --out.")
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize("more", ["", "--source nothere.yaml"])
def test_a_word_of_a_task_is_no_directory_that_stands_here_by_chance(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str
) -> None:
    (tmp_path / "weather").mkdir()
    monkeypatch.chdir(tmp_path)
    given = {"TOOLWRIGHT_HOME": str(settings.home), "DOCKER_HOST": NO_ENGINE}
    words = ["forge", "weather", *more.split()]
    told = CliRunner().invoke(toolwright, words, env=given, catch_exceptions=False)
    assert "it is a directory" not in told.output
