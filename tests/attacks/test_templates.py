"""Nothing that a template of the control page puts out is exempt from escaping."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import pytest
from jinja2 import nodes
from jinja2.exceptions import UndefinedError

from orchestrator.control.rendering import ENVIRONMENT, PartRenderer

MARKUP = "<img src=x onerror=alert(1)>\"'&{{ 7 * 7 }}{% raw %}"
FOLDER = Path(str(resources.files("orchestrator.control") / "templates"))
NAMES = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.html"))
FILTERS = {
    *("capitalize", "class_name", "clock", "date", "explain_word", "format", "join", "name_clicks")
}
"""Those that make no HTML of a text."""
CODE = sorted(FOLDER.parent.rglob("*.py"))


def find_exemptions(source: str) -> Iterator[str]:
    """What in a template could put out a text as it is."""
    tree = ENVIRONMENT.parse(source)
    yield from (each.name for each in tree.find_all(nodes.Filter) if each.name not in FILTERS)
    for kind in (nodes.MarkSafe, nodes.MarkSafeIfAutoescape, nodes.ScopedEvalContextModifier):
        yield from (kind.__name__ for _ in tree.find_all(kind))
    if "autoescape" in source:
        yield "autoescape"


def test_there_are_templates_and_all_of_them_are_escaped() -> None:
    assert len(NAMES) > 20
    assert ENVIRONMENT.autoescape is True
    for name in NAMES:
        assert ENVIRONMENT.get_template(name).environment is ENVIRONMENT


@pytest.mark.parametrize("name", NAMES)
def test_no_template_calls_a_value_safe(name: str) -> None:
    assert [*find_exemptions((FOLDER / name).read_text("utf-8"))] == []


@pytest.mark.parametrize(
    "source",
    [
        "{{ x|safe }}",
        "{{ (x ~ y)|trim|safe }}",
        "{{ x|tojson }}",
        "{{ x|xmlattr }}",
        "{{ x|urlize }}",
        "{% filter safe %}{{ x }}{% endfilter %}",
        "{% autoescape false %}{{ x }}{% endautoescape %}",
    ],
)
def test_what_would_put_out_a_text_as_it_is_is_found(source: str) -> None:
    assert [*find_exemptions(source)] != []


def test_no_code_of_the_page_makes_html_beside_the_templates() -> None:
    """Neither a text that counts as HTML, nor a tag in a string."""
    made = re.compile(
        r"\bMarkup\(|\.html_safe|html\.escape|from html import|</?[a-z]+[ >][^`]*[\"']"
    )
    assert len(CODE) > 30
    assert [
        (path.name, found[0]) for path in CODE if (found := made.search(path.read_text()))
    ] == []


@dataclass(frozen=True)
class Problem:
    title: str
    told: str


def test_markup_in_a_value_is_text_wherever_it_stands() -> None:
    html = PartRenderer().render("problems", "broken", Problem(MARKUP, MARKUP))
    assert "<img" not in html
    assert html.count("&lt;img src=x onerror=alert(1)&gt;&#34;&#39;&amp;{{ 7 * 7 }}{% raw %}") == 2
    attribute = ENVIRONMENT.from_string('<a title="{{ x }}">').render(x='" onclick="x')
    assert attribute == '<a title="&#34; onclick=&#34;x">'


def test_a_value_is_shown() -> None:
    html = PartRenderer().render("problems", "broken", Problem("Calls", "It cannot be read."))
    assert "<h2>Calls</h2>" in html
    assert '<p role="alert">It cannot be read.</p>' in html


def test_a_value_that_a_template_lacks_is_an_error_and_no_gap() -> None:
    with pytest.raises(UndefinedError):
        PartRenderer().render("problems", "broken", object())
