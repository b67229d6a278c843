"""What a home gets at its first use is the same for all who use it first at once."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from orchestrator.frontends.http import load_token
from orchestrator.settings import load_settings

T = TypeVar("T")


def use_at_once(path: Path, use: Callable[[], T], *, there: bool) -> tuple[T, T]:
    """What the first gets, and the second, which comes as soon as the file is there, or just before
    the first has made it.
    """
    second: list[T] = []

    def look(frame: object, event: str, called: Any) -> None:
        ready = path.exists() if there else getattr(called, "__name__", "") in ("link", "replace")
        if event == "c_call" and ready and not second:
            second.append(use())

    sys.setprofile(look)
    try:
        first = use()
    finally:
        sys.setprofile(None)
    return first, second[0]


def test_two_who_use_a_home_first_have_one_installation(tmp_path: Path) -> None:
    def use() -> str:
        return load_settings({"TOOLWRIGHT_HOME": str(tmp_path)}).instance

    first, second = use_at_once(tmp_path / "instance", use, there=True)
    assert first == second == use()


def test_two_that_serve_over_http_first_have_one_token(tmp_path: Path) -> None:
    path = tmp_path / "http.token"
    (first, _), (second, _) = use_at_once(path, lambda: load_token(path), there=False)
    assert first == second == load_token(path)[0]
