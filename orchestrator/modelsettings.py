"""Which model may be asked, where, and what it may cost: what the environment says of that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.budget import Budget
from orchestrator.errors import SettingInvalid

OPENAI = "https://api.openai.com/v1"


@dataclass(frozen=True)
class ModelSettings:
    """An OpenAI-compatible endpoint, as the `openai` package's users name it, and our lines.

    Nothing is asked unless the model or the base URL is named. `reader` is the model that reads
    tasks for a second time, "" for the same one. `seconds` bounds one answer, `answer_tokens` its
    length.
    """

    base_url: str = ""
    model: str = ""
    reader: str = ""
    key: str = field(default="", repr=False)
    seconds: float = 300.0
    answer_tokens: int = 16_000
    budget: Budget = field(default_factory=Budget)

    @property
    def wanted(self) -> bool:
        return bool(self.model or self.base_url)

    @property
    def url(self) -> str:
        return self.base_url or OPENAI


def load_model_settings(given: Mapping[str, str]) -> ModelSettings:
    """OPENAI_BASE_URL, OPENAI_API_KEY, OPENAI_MODEL and TOOLWRIGHT_…. Raises SettingInvalid."""
    usual, settings = Budget(), ModelSettings()
    return ModelSettings(
        base_url=given.get("OPENAI_BASE_URL", "").strip().rstrip("/"),
        model=given.get("OPENAI_MODEL", "").strip(),
        reader=given.get("TOOLWRIGHT_READER_MODEL", "").strip(),
        key=given.get("OPENAI_API_KEY", "").strip(),
        seconds=_number(given, "TOOLWRIGHT_MODEL_SECONDS", settings.seconds),
        answer_tokens=int(_number(given, "TOOLWRIGHT_MODEL_TOKENS", settings.answer_tokens)),
        budget=Budget(
            forges=int(_number(given, "TOOLWRIGHT_FORGES_PER_DAY", usual.forges)),
            forge_tokens=int(_number(given, "TOOLWRIGHT_FORGE_TOKENS", usual.forge_tokens)),
            day_tokens=int(_number(given, "TOOLWRIGHT_DAY_TOKENS", usual.day_tokens)),
            forge_money=_number(given, "TOOLWRIGHT_FORGE_MONEY", usual.forge_money),
            day_money=_number(given, "TOOLWRIGHT_DAY_MONEY", usual.day_money),
            price_in=_number(given, "TOOLWRIGHT_PRICE_IN", usual.price_in),
            price_out=_number(given, "TOOLWRIGHT_PRICE_OUT", usual.price_out),
        ),
    )


def _number(given: Mapping[str, str], name: str, usual: float) -> float:
    """A number of at least 0, and below a thousand million."""
    text = given.get(name, "").strip()
    try:
        value = float(text) if text else usual
    except ValueError as error:
        raise SettingInvalid(name, text) from error
    if not 0 <= value < 1e9:
        raise SettingInvalid(name, text)
    return value
