"""The templates of the control page. Whatever they put out is escaped, and nothing is exempt: the
HTML of the page, its drawings included, stands in templates alone.

A template of a room has a macro for each of its parts, which takes a frozen value of what it shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from jinja2 import Environment, PackageLoader, StrictUndefined
from jinja2.environment import TemplateModule
from markupsafe import Markup

from orchestrator.control.clicks import name_clicks
from orchestrator.control.logins import LoginSession
from orchestrator.control.texts import format_clock, format_date


def _build_environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("orchestrator.control", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    environment.filters["date"] = format_date
    environment.filters["clock"] = format_clock
    environment.filters["class_name"] = name_class
    environment.filters["explain_word"] = explain_word
    environment.filters["name_clicks"] = name_clicks
    # Of pages that have no parts.
    environment.globals.update(sign=None, title="", plain=None)
    return environment


def explain_word(word: str) -> str:
    """A word of ours with a plain one beside it, where newcomers do not know it."""
    return f"{word} ({WORDS[word]})" if word in WORDS else word


WORDS: Mapping[str, str] = {
    "probationary": "new",
    "degraded": "fails often",
    "quarantined": "stopped",
    "experimental": "on trial",
    "resident": "in the background",
    "ending": "takes up nothing more",
    "serve": "for a client",
    "work": "does jobs",
    "control": "this page",
}


def name_class(word: str) -> str:
    """A word as the name of a class of the style sheet; "" where it is none."""
    return word if word.isascii() and word.isalpha() else ""


ENVIRONMENT = _build_environment()


@dataclass(frozen=True)
class Viewer:
    """For whom parts of a room are made: the browser session whose forms are signed, and, for a
    page without script, the fields that a form which leads on has to have.
    """

    session: LoginSession | None = None
    plain: Mapping[str, str] | None = None


NOBODY = Viewer()


@dataclass(frozen=True)
class PartRenderer:
    """Renders parts of a room for one viewer. `title` is the room's: it stands above all parts, so
    that a part of the same title is shown without one.
    """

    viewer: Viewer = NOBODY
    title: str = ""
    _modules: dict[str, TemplateModule] = field(default_factory=dict, repr=False)

    def render(self, room: str, macro: str, view: object) -> Markup:
        """What the macro of a room's template makes of a value."""
        if room not in self._modules:
            template = ENVIRONMENT.get_template(f"rooms/{room}.html")
            self._modules[room] = template.make_module(self._build_context())
        render: Callable[[object], Markup] = getattr(self._modules[room], macro)
        return render(view)

    def _build_context(self) -> dict[str, object]:
        session = self.viewer.session
        sign = session.sign_form if session else None
        return {"sign": sign, "title": self.title, "plain": self.viewer.plain}


def render_template(name: str, **context: object) -> str:
    """A whole page."""
    return ENVIRONMENT.get_template(f"{name}.html").render(context)
