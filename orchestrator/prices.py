"""Prices of models: a small table that is shipped, and a file in the home that goes before it."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

from orchestrator.errors import PricesInvalid

FILE = "prices.toml"
MAX_BYTES = 256 * 1024
MAX_PRICE = 1e6
_DATED = re.compile(r"(?P<name>.+?)-(?:\d{4}-\d{2}-\d{2}|\d{8})\Z")


@dataclass(frozen=True)
class ModelPrice:
    """What a million tokens cost in each direction; `cached` is for those that an endpoint had in
    its cache of prompts, None where they cost as much as others.
    """

    tokens_in: float
    tokens_out: float
    cached: float | None = None


@dataclass(frozen=True)
class PriceTable:
    """`path` is the person's own file; it is read when a price is first asked for."""

    path: Path | None = None

    def find_price(self, model: str) -> ModelPrice | None:
        """The price of a model by its name, with or without its date; None where nobody knows it.

        Raises PricesInvalid.
        """
        dated = _DATED.match(model)
        names = (model, dated["name"]) if dated else (model,)
        return next((self._prices[name] for name in names if name in self._prices), None)

    @cached_property
    def _prices(self) -> Mapping[str, ModelPrice]:
        shipped = resources.files("orchestrator").joinpath(FILE).read_bytes()
        return {**parse_prices(shipped, FILE), **self._read_own()}

    def _read_own(self) -> Mapping[str, ModelPrice]:
        if self.path is None or not self.path.exists():
            return {}
        try:
            with self.path.open("rb") as file:
                content = file.read(MAX_BYTES + 1)
        except OSError as error:
            raise PricesInvalid(str(self.path), error.strerror or str(error)) from error
        if len(content) > MAX_BYTES:
            raise PricesInvalid(str(self.path), f"it has more than {MAX_BYTES} bytes")
        return parse_prices(content, str(self.path))


def parse_prices(content: bytes, where: str) -> Mapping[str, ModelPrice]:
    """The prices of a TOML text: `[models."NAME"]` with `in`, `out` and perhaps `cached`.
    Raises PricesInvalid.
    """
    try:
        read = tomllib.loads(content.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise PricesInvalid(where, str(error)[:200]) from error
    models = read.get("models", {})
    unknown = sorted(read.keys() - {"models"})
    if unknown or not isinstance(models, dict):
        raise PricesInvalid(where, f"{(unknown or ['models'])[0]!r} is not a table of models")
    return {name: _parse_price(name, models[name], where) for name in models}


def _parse_price(name: str, told: Any, where: str) -> ModelPrice:
    given = told if isinstance(told, dict) else {}
    if given.keys() - {"cached"} != {"in", "out"}:
        reason = f"{name[:80]!r} does not have `in`, `out`, perhaps `cached` and nothing else"
        raise PricesInvalid(where, reason)
    numbers = [given[key] for key in ("in", "out", "cached") if key in given]
    for number in numbers:
        plain = isinstance(number, int | float) and not isinstance(number, bool)
        if not plain or not math.isfinite(number) or not 0 <= number < MAX_PRICE:
            raise PricesInvalid(where, f"{name[:80]!r} has a price that is no number from 0")
    return ModelPrice(*map(float, numbers))
