"""Access logs of web servers (Common Log Format)."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from bench.author.task import Task, checks

_TEXT = """\
A tool `summarize_log(text)` for lines in the Common Log Format of web servers:
    127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326
It gives {"requests": number of good lines, "malformed": number of other lines, "bytes": sum of
the last fields, where - counts as 0, "statuses": {"200": count, ...}, "top": [{"path",
"count"}]}. `top` has the five paths asked for most, without their query (what follows a ?),
most first and paths of one count in alphabetical order. Blank lines are not counted at all. A
good line has exactly those seven fields: host, two more without spaces, the time in square
brackets, the request in quotes with method, path and protocol separated by single spaces, a
status from 100 to 599 and the bytes."""
_LINE = re.compile(
    r'\S+ \S+ \S+ \[[^\]\[]+\] "[^ "]+ ([^ "]+) [^ "]+" ([1-5]\d\d) (\d+|-)', re.ASCII
)


def summarize_log(text: str) -> dict[str, Any]:
    lines = [line.rstrip("\r") for line in text.split("\n") if line.strip()]
    found = [match for match in map(_LINE.fullmatch, lines) if match]
    paths = Counter(match[1].partition("?")[0] for match in found)
    top = sorted(paths.items(), key=lambda pair: (-pair[1], pair[0]))[:5]
    return {
        "requests": len(found),
        "malformed": len(lines) - len(found),
        "bytes": sum(int(match[3]) for match in found if match[3] != "-"),
        "statuses": dict(Counter(match[2] for match in found)),
        "top": [{"path": path, "count": count} for path, count in top],
    }


def _line(path: str = "/", status: object = 200, size: object = 10, host: str = "10.0.0.1") -> str:
    return f'{host} - - [10/Oct/2000:13:55:36 -0700] "GET {path} HTTP/1.1" {status} {size}'


_TEXTS = (
    "",
    "\n\n",
    _line(),
    _line() + "\n",
    _line() + "\r\n" + _line("/a") + "\r\n",
    "\n".join(map(_line, ("/b", "/a", "/b", "/c", "/a", "/d", "/e", "/f"))),
    "\n".join(map(_line, ("/x?a=1", "/x?b=2", "/x", "/y?", "?q"))),
    _line(size="-") + "\n" + _line(size=5),
    "\n".join(_line(status=status) for status in (200, 404, 404, 500, 301)),
    "nonsense\n" + _line() + "\n# comment\n",
    _line(status=99),
    _line(status=600),
    _line(status=20),
    _line() + " extra",
    _line().replace('"GET', '"'),
    _line().replace("[", "").replace("]", ""),
    _line("/a b"),
    _line().replace('"', ""),
    _line(size=-5),
    _line(size="1.5"),
    _line(host="2001:db8::1"),
    "   \n" + _line(),
    _line().replace("- -", "- frank"),
    _line("/é"),
    "\n".join([_line("/same")] * 500),
    " " + _line(),
)

TASK = Task(
    "access_log",
    _TEXT,
    checks(
        {"summarize_log": summarize_log}, [("summarize_log", {"text": text}) for text in _TEXTS]
    ),
)
