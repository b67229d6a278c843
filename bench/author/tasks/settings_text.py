"""Settings files of a small format of their own."""

from __future__ import annotations

import re
from typing import Any

from bench.author.task import Refused, Task, checks

_TEXT = """\
A tool `parse_settings(text)` for a settings format: lines `key = value`, keys of letters,
digits, _ and -, sections `[name]` (same letters) that hold until the next one, comments from a
line's first # or ; (only where it is the line's first character that is no space), blank lines.
Spaces around keys, values and names do not count. Values: true and false are booleans, whole
numbers like -12 are numbers, a text in double quotes is that text (with \\" and \\\\ inside,
nothing after the closing quote), and anything else is text as it stands. It gives {"settings":
{key: value for keys before any section, section: {key: value}}}. A section that comes twice
goes on. Refused are: a line that is none of these, an empty key, a key that comes twice in its
section, a section named like a key before any section, and a quote that is not closed."""
_WORD = r"[A-Za-z0-9_-]+"


def parse_settings(text: str) -> dict[str, Any]:
    root: dict[str, Any] = {}
    sections: set[str] = set()
    here = root
    for line in text.splitlines():
        stripped = line.strip()
        if not stripped or stripped[0] in "#;":
            continue
        named = re.fullmatch(rf"\[\s*({_WORD})\s*\]", stripped, re.ASCII)
        pair = re.fullmatch(rf"({_WORD})\s*=\s*(.*)", stripped, re.ASCII)
        if named:
            name = named[1]
            if name in root and name not in sections:
                raise Refused
            sections.add(name)
            here = root.setdefault(name, {})
        elif pair and pair[1] not in here:
            here[pair[1]] = _value(pair[2])
        else:
            raise Refused
    return {"settings": root}


def _value(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    if re.fullmatch(r"-?\d{1,15}", text, re.ASCII):
        return int(text)
    if text.startswith('"'):
        quoted = re.fullmatch(r'"((?:[^"\\]|\\["\\])*)"', text)
        if not quoted:
            raise Refused
        return re.sub(r"\\(.)", r"\1", quoted[1])
    return text


TASK = Task(
    "settings_text",
    _TEXT,
    checks(
        {"parse_settings": parse_settings},
        [
            ("parse_settings", {"text": text})
            for text in (
                "",
                "a = 1",
                "a=1\nb = two words ",
                "a = true\nb = false\nc = True",
                "a = -12\nb = 1.5",
                'a = "x # y"',
                'a = "say \\"hi\\" \\\\"',
                'a = "open',
                'a = "x" y',
                "# c\n; d\na = 1 # no",
                "[s]\na = 1\n[t]\na = 2",
                "[s]\na = 1\n[t]\nb = 2\n[s]\nc = 3",
                "a = 1\na = 2",
                "[s]\na = 1\n[s]\na = 2",
                "s = 1\n[s]\na = 1",
                "[s]\n[s]",
                "nonsense",
                "= 1",
                "a b = 1",
                "[bad name]",
                "[s",
                "a =",
                "[ s ]\n  a   =   1  ",
                "a = 1=2",
                'a = ""',
                "a-b_C9 = x",
                "[s]\ns = 1",
                "\r\na = 1\r\n",
            )
        ],
    ),
)
