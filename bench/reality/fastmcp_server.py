"""FastMCP's `from_openapi` on stdin and stdout, run by the interpreter that has FastMCP.

python fastmcp_server.py DOCUMENT BASE_URL HEADERS QUERY
"""

import json
import sys
from pathlib import Path

import httpx2
from fastmcp import FastMCP


def name_operation(route, component) -> None:  # type: ignore[no-untyped-def]
    """Say which operation a tool is, so that a scenario finds it."""
    component.description = f"{route.method} {route.path} {component.description or ''}"


def main() -> None:
    document, base_url, headers, query = sys.argv[1:]

    async def add_query(request: httpx2.Request) -> None:
        request.url = request.url.copy_merge_params(json.loads(query))

    client = httpx2.AsyncClient(
        base_url=base_url,
        headers=json.loads(headers),
        timeout=60.0,
        event_hooks={"request": [add_query]},
    )
    described = json.loads(Path(document).read_text())
    server = FastMCP.from_openapi(described, client=client, mcp_component_fn=name_operation)
    server.run(transport="stdio", show_banner=False)


if __name__ == "__main__":
    main()
