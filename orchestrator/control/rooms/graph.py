"""The graph: which server asks which host and calls which tool, and which version came of which."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from orchestrator.control.drawing import GraphNode, LaneStop, render_columns, render_lanes
from orchestrator.control.markup import (
    escape_text,
    render_badge,
    render_empty,
    render_section,
    render_table,
)
from orchestrator.control.rooms.place import build_address
from registry.models import ServerSummary
from registry.servers.lineage import LineageEntry
from registry.store import Store
from sandbox.bundle.permissions import Permission, parse_permissions

MAX_SERVERS = 60
MAX_HOSTS = 60
MAX_VERSIONS = 11
MAX_DEPTH = 3
HOSTS = ("network", "tls", "dns", "tcp")


@dataclass(frozen=True)
class ServerLinks:
    """What a server asks outside of itself: hosts, and tools of other servers as `server.tool`."""

    server: ServerSummary
    hosts: tuple[str, ...]
    tools: tuple[str, ...]

    @property
    def callees(self) -> tuple[str, ...]:
        """The names of the servers whose tools it calls."""
        return tuple(dict.fromkeys(tool.partition(".")[0] for tool in self.tools))


def find_links(store: Store) -> tuple[ServerLinks, ...]:
    """The links of all servers, as their current versions declare them."""
    servers = [each for each in store.servers.find_summaries() if each.state != "archived"]
    permissions = store.servers.find_permissions(each.name for each in servers)
    return tuple(
        _build_links(server, parse_permissions(permissions.get(server.name, ())))
        for server in servers
    )


def _build_links(server: ServerSummary, permissions: Iterable[Permission]) -> ServerLinks:
    given = tuple(permissions)
    hosts = sorted({_name_host(each) for each in given if each.kind in HOSTS})
    tools = sorted({each.name for each in given if each.kind == "call"})
    return ServerLinks(server, tuple(hosts), tuple(tools))


def _name_host(permission: Permission) -> str:
    bare = permission.name.removesuffix(":443")
    return bare if permission.kind == "network" else f"{permission.kind} {permission.name}"


def render_graph(store: Store) -> str:
    """A drawing of the links, and a list of them."""
    links = find_links(store)
    nothing = render_empty("No server yet. Have one made of an API:", "toolwright forge URL")
    if not links:
        return render_section("Servers, tools and hosts", nothing)
    drawn, cut = _draw_links(links[:MAX_SERVERS]), len(links) - MAX_SERVERS
    told = f"<p>{cut} more servers stand in the list.</p>" if cut > 0 else ""
    return render_section("Servers, tools and hosts", drawn + told + _list_links(links))


def _draw_links(links: Sequence[ServerLinks]) -> str:
    depths = compute_depths({each.server.name: each.callees for each in links})
    columns: list[list[GraphNode]] = [[] for _ in range(MAX_DEPTH + 1)]
    for each in links:
        name = each.server.name
        node = GraphNode(f"s:{name}", name, _choose_kind(each), build_address("servers", name))
        columns[MAX_DEPTH - depths[name]].append(node)
    hosts = list(dict.fromkeys(host for each in links for host in each.hosts))[:MAX_HOSTS]
    edges = [
        *((f"s:{each.server.name}", f"s:{name}") for each in links for name in each.callees),
        *((f"s:{each.server.name}", f"h:{host}") for each in links for host in each.hosts),
    ]
    columns.append([GraphNode(f"h:{host}", host, "host") for host in hosts])
    return render_columns(columns, edges, "Servers and the hosts and servers that they ask")


def _choose_kind(links: ServerLinks) -> str:
    held = links.server.state in ("quarantined", "experimental")
    return links.server.state if held else links.server.standing.level


def compute_depths(callees: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """How many servers deep each one's calls go, at most MAX_DEPTH; 0 for one that calls none."""
    depths = dict.fromkeys(callees, 0)
    for _ in range(MAX_DEPTH):
        depths = {
            name: min(
                MAX_DEPTH, max((depths[each] + 1 for each in named if each in depths), default=0)
            )
            for name, named in callees.items()
        }
    return depths


def _list_links(links: Sequence[ServerLinks]) -> str:
    callers: dict[str, list[str]] = {}
    for each in links:
        for name in each.callees:
            callers.setdefault(name, []).append(each.server.name)
    rows = [
        (
            _link_server(each.server.name),
            render_badge(_choose_kind(each)),
            _join(each.hosts),
            _join(each.tools),
            ", ".join(map(_link_server, callers.get(each.server.name, ()))),
        )
        for each in links
    ]
    heads = ("server", "trust", "asks", "calls", "called by")
    return render_table(heads, rows, "servers, tools and hosts")


def _link_server(name: str) -> str:
    return f'<a href="{escape(build_address("servers", name))}">{escape_text(name)}</a>'


def _join(names: Sequence[str]) -> str:
    return "<br>".join(f"<code>{escape_text(name, 100)}</code>" for name in names)


def render_lineage(store: Store) -> str:
    """The versions of each server that has more than one, or that was made from another's."""
    lines = store.servers.find_lineage()
    versions: dict[str, list[LineageEntry]] = {}
    for line in lines:
        versions.setdefault(line.name, []).append(line)
    shown = {
        name: own[-MAX_VERSIONS:]
        for name, own in versions.items()
        if len(own) > 1 or _is_foreign(own[0])
    }
    kept = dict([*shown.items()][:MAX_SERVERS])
    if not kept:
        told = "Every server is in its first version. Repairs and changes make the next ones."
        return render_section("Lineage", render_empty(told))
    lanes = {name: [*map(_build_stop, own)] for name, own in kept.items()}
    drawn = render_lanes(lanes, "Versions of servers and what they were made from")
    listed = "".join(_list_versions(name, own) for name, own in kept.items())
    return render_section("Lineage", f'{drawn}<ul class="plain">{listed}</ul>')


def _is_foreign(line: LineageEntry) -> bool:
    """Whether a version was made from another server's."""
    return bool(line.parent) and line.parent.partition("@")[0] != line.name


def _build_stop(line: LineageEntry) -> LaneStop:
    parent = line.parent.partition(":")[0] if _is_foreign(line) else ""
    kind = "current" if line.current else ""
    return LaneStop(f"{line.name}@{line.version}", str(line.version), kind, parent)


def _list_versions(name: str, versions: Sequence[LineageEntry]) -> str:
    address = build_address("servers", name)
    told = " → ".join(
        f'<a href="{escape(address)}?version={line.version}">{line.version}</a>'
        f"{' current' if line.current else ''}"
        for line in versions
    )
    origins = [line.parent for line in versions if _is_foreign(line)]
    made = f", made from {escape_text(origins[0].partition(':')[0])}" if origins else ""
    return f"<li>{_link_server(name)}: {told}{made}</li>"
