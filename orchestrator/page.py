"""The control page's frame; `page.js` keeps its parts (`orchestrator.panels`) up to date."""

from __future__ import annotations

from orchestrator.panels import PANELS

TITLES = {"freeze": "Freeze", "timeline": "Audit"}


def render_page() -> str:
    """The page without its changing parts, which come as events of `/events`."""
    parts = "".join(
        f'<section id="{name}" aria-label="{TITLES.get(name, name.capitalize())}"></section>'
        for name in PANELS
        if name != "freeze"
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Toolwright</title>
<link rel="stylesheet" href="/page.css">
<script src="/page.js" defer></script>
</head>
<body>
<header>
<h1>Toolwright <small id="link" role="status">connecting</small></h1>
<label>PIN <input id="pin" type="password" autocomplete="off" inputmode="text"></label>
<div id="freeze"></div>
</header>
<p id="told" role="status" aria-live="polite"></p>
<form id="do" autocomplete="off">
<label for="task">Do</label>
<input id="task" name="task" required maxlength="4000" placeholder="list the DNS zones">
<details><summary>More</summary>
<label>Tool <input name="tool" placeholder="server.tool, or none to forge"></label>
<label>Arguments <input name="arguments" placeholder='{{"server_id": "localhost"}}'></label>
<label>Source <input name="source" placeholder="where the API is, to forge"></label>
</details>
<button>Do it</button>
<output id="done"></output>
</form>
<main>{parts}</main>
<form id="search" autocomplete="off">
<label>Search calls and audit <input name="text" maxlength="200"></label>
<button>Search</button>
<ol id="found"></ol>
</form>
<footer><a href="/docs">The HTTP API</a></footer>
</body>
</html>
"""
