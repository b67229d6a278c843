"""Conversion of an HTML page's main content to Markdown: headings, tables and code, nothing hidden.

A model would read hidden text that no person sees.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass

from bs4 import BeautifulSoup, Tag
from markdownify import MarkdownConverter

from sandbox.sanitize import replace_long_references

MAX_DEPTH = 90
MAX_LINKS = 400
MAX_TAGS = 30_000
"""Beyond them a page is its words alone."""
_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9]{0,20})((?:[\s/][^<>]{0,4000})?)>")
_ATTRIBUTE = re.compile(
    r"\b(href|hidden|aria-hidden|style|role)(?:\s{0,9}=\s{0,9}(?:\"([^\"]*)\"|'([^']*)'|([^\s\"']+)))?",
    re.IGNORECASE,
)
_RAW = frozenset({"script", "style", "template", "noscript", "iframe", "svg", "textarea", "object"})
_DROPPED = ("nav", "footer", "aside", "form", "button", "select", "head", "dialog")
_UNSEEN = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|opacity\s*:\s*0(?:\.0*)?(?:%|;|\s|$)"
    r"|font-size\s*:\s*0|(?:left|top|text-indent)\s*:\s*-\d{3,}|\b(?:width|height)\s*:\s*[01](?:px)?\s*(?:;|$)"
    r"|clip(?:-path)?\s*:\s*(?:rect|inset)",
    re.IGNORECASE,
)
_MIN_MAIN = 200
"""Characters below which a page's `main` is a frame that says nothing."""


@dataclass(frozen=True)
class Markup:
    """The visible content of a page. `links` are (target, words) of its links, unresolved."""

    title: str
    text: str
    links: tuple[tuple[str, str], ...] = ()


def read_markup(content: str) -> Markup:
    """Parse a page, in time linear in its length whatever it contains."""
    content = replace_long_references(content)
    title = _find_title(content)
    soup = BeautifulSoup("".join(_simplify_markup(content)), "html.parser")
    links = tuple(_find_links(soup))
    for tag in soup.find_all(_is_dropped):
        if not tag.decomposed:
            tag.decompose()
    main = _find_main(soup)
    if _is_deep(main):
        return Markup(title, main.get_text("\n"), links)
    return Markup(title, _CONVERTER.convert_soup(main), links)


class _Converter(MarkdownConverter):
    """A Markdown converter that keeps only the words of links and escapes nothing."""


_CONVERTER = _Converter(
    heading_style="ATX",
    strip=["a", "img"],
    escape_asterisks=False,
    escape_underscores=False,
    escape_misc=False,
)


def _simplify_markup(content: str) -> Iterator[str]:
    """Yield the page with whole tags only and few attributes: html.parser takes quadratic time for
    broken ones (https://nvd.nist.gov/vuln/detail/CVE-2025-6069).
    """
    text = _remove_comments(content)
    lower = text.lower()
    at = tags = 0
    for found in _TAG.finditer(text):
        if found.start() < at:
            continue
        yield text[at : found.start()].replace("<", "&lt;")
        at = found.end()
        closing, name, inside = found[1], found[2].lower(), found[3]
        if name in _RAW:
            if not closing and not inside.endswith("/"):
                end = lower.find(f"</{name}", at)
                at = len(text) if end < 0 else end
            continue
        tags += 1
        if tags > MAX_TAGS:
            yield " "
            continue
        yield f"<{closing}{name}{'' if closing else _format_attributes(inside)}>"
    yield text[at:].replace("<", "&lt;")


def _format_attributes(inside: str) -> str:
    kept = []
    for name, *values in _ATTRIBUTE.findall(inside):
        value = html.escape(html.unescape("".join(values))[:500])
        kept.append(f' {name.lower()}="{value}"')
    return "".join(kept)


def _remove_comments(content: str) -> str:
    parts, at = [], 0
    while (start := content.find("<!--", at)) >= 0:
        parts.append(content[at:start])
        end = content.find("-->", start + 4)
        if end < 0:
            return "".join(parts)
        at = end + 3
    return "".join([*parts, content[at:]])


def _find_title(content: str) -> str:
    found = re.search(r"<title[^<>]{0,200}>([^<]{0,300})", content[:50_000], re.IGNORECASE)
    return html.unescape(found[1]).strip() if found else ""


def _find_links(soup: BeautifulSoup) -> Iterator[tuple[str, str]]:
    for tag in soup.find_all("a", href=True, limit=MAX_LINKS):
        yield str(tag["href"]), tag.get_text(" ", strip=True)[:200]


def _is_dropped(tag: Tag) -> bool:
    return (
        tag.name in _DROPPED
        or tag.has_attr("hidden")
        or str(tag.get("aria-hidden", "")).lower() == "true"
        or tag.get("role") in ("navigation", "search", "banner", "contentinfo")
        or _UNSEEN.search(str(tag.get("style", ""))) is not None
    )


def _find_main(soup: BeautifulSoup) -> Tag:
    for found in (soup.find("main"), soup.find(None, {"role": "main"}), soup.find("article")):
        if isinstance(found, Tag) and len(found.get_text(strip=True)) >= _MIN_MAIN:
            return found
    return soup


def _is_deep(root: Tag) -> bool:
    level = [root]
    for _ in range(MAX_DEPTH):
        level = [child for tag in level for child in tag.children if isinstance(child, Tag)]
        if not level:
            return False
    return True
