from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.errors import BandsUnordered, SettingInvalid
from orchestrator.settings import DecisionBands, load_bands, load_settings
from registry.models import Bands


def test_the_bands_of_a_decision_are_settings(tmp_path: Path) -> None:
    given = {
        "TOOLWRIGHT_ROUTE_ACT": "0.8",
        "TOOLWRIGHT_ROUTE_CONFIRM": " .65",
        "TOOLWRIGHT_ROUTE_ADAPT": "0.75",
        "TOOLWRIGHT_ROUTE_FORGE": "0",
        "TOOLWRIGHT_ROUTE_MARGIN": "1",
    }
    bands = load_settings(given, home=tmp_path).bands
    assert bands == DecisionBands(act=0.8, confirm=0.65, adapt=0.75, forge=0.0, margin=1.0)
    assert bands.build_search_bands() == Bands(reuse=0.75, forge=0.0)
    assert load_bands({}) == DecisionBands()


@pytest.mark.parametrize("value", ["1.01", "-0.1", "nan", "high"])
def test_a_band_is_a_probability(value: str) -> None:
    with pytest.raises(SettingInvalid, match="TOOLWRIGHT_ROUTE_ACT"):
        load_bands({"TOOLWRIGHT_ROUTE_ACT": value})


def test_bands_out_of_order_are_refused() -> None:
    with pytest.raises(BandsUnordered, match="rise in this order"):
        load_bands({"TOOLWRIGHT_ROUTE_CONFIRM": "0.9"})
