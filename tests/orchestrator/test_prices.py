"""Prices of models: shipped ones, a person's own before them, and what is no price."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.errors import PricesInvalid
from orchestrator.prices import ModelPrice, PriceTable, parse_prices
from orchestrator.settings import Budget, load_settings

OWN = '[models."local:7b"]\nin = 0\nout = 0.5\n[models."gpt-4o"]\nin = 1\nout = 2\n'


def test_a_persons_own_prices_go_before_the_shipped_ones(tmp_path: Path) -> None:
    path = tmp_path / "prices.toml"
    shipped = PriceTable(path).find_price("gpt-4o")
    path.write_text(OWN)
    table = PriceTable(path)
    assert shipped is not None
    assert table.find_price("gpt-4o") == ModelPrice(1.0, 2.0) != shipped
    assert table.find_price("local:7b") == ModelPrice(0.0, 0.5)
    assert table.find_price("gpt-4o-mini") == PriceTable().find_price("gpt-4o-mini") is not None


@pytest.mark.parametrize("model", ["gpt-4o-2024-08-06", "gpt-4o-20240806", "gpt-4o"])
def test_a_dated_name_has_the_price_of_its_model(model: str, tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text(OWN)
    assert PriceTable(tmp_path / "prices.toml").find_price(model) == ModelPrice(1.0, 2.0)


@pytest.mark.parametrize("model", ["", "gpt-4o-audio", "gpt-4", "somebody/gpt-4o", "o3-2024"])
def test_a_model_that_no_table_knows_has_no_price(model: str) -> None:
    assert PriceTable().find_price(model) is None


@pytest.mark.parametrize(
    "text",
    [
        "models = 3",
        "[models]\nx = 3",
        '[models."x"]\nin = 1',
        '[models."x"]\nin = 1\nout = 2\ncache = 3',
        '[models."x"]\nin = -1\nout = 2',
        '[models."x"]\nin = nan\nout = 2',
        '[models."x"]\nin = inf\nout = 2',
        '[models."x"]\nin = true\nout = 2',
        '[models."x"]\nin = "1"\nout = 2',
        "[prices]\nx = 1",
        "not toml",
        "\udcff",
    ],
)
def test_what_is_no_price_is_refused_and_says_where(text: str) -> None:
    with pytest.raises(PricesInvalid, match=r"prices\.toml is not understood"):
        parse_prices(text.encode("utf-8", "surrogateescape"), "prices.toml")


def test_a_file_without_end_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "prices.toml"
    path.write_bytes(b"#" * 300_000)
    with pytest.raises(PricesInvalid, match="more than"):
        PriceTable(path).find_price("gpt-4o")


def test_the_settings_price_goes_before_the_tables_and_the_homes_table_is_read(
    tmp_path: Path,
) -> None:
    home = {"TOOLWRIGHT_HOME": str(tmp_path), "TOOLWRIGHT_MONTH_MONEY": "7"}
    (tmp_path / "prices.toml").write_text(OWN)
    budget = load_settings(home).of_model.budget
    priced = load_settings({**home, "TOOLWRIGHT_PRICE_IN": "9"}).of_model.budget
    assert budget.month_money == 7.0
    assert budget.compute_cost(1_000_000, 1_000_000, "gpt-4o") == 3.0
    assert priced.compute_cost(1_000_000, 1_000_000, "gpt-4o") == 9.0
    assert Budget().compute_cost(1_000_000, 1_000_000, "nobody's") == 0.0


def test_tokens_of_the_endpoints_cache_have_a_price_of_their_own_where_one_is_told(
    tmp_path: Path,
) -> None:
    (tmp_path / "prices.toml").write_text(f'{OWN}[models."c"]\nin = 2\nout = 4\ncached = 0.5\n')
    budget = Budget(prices=PriceTable(tmp_path / "prices.toml"))
    assert budget.compute_cost(1_000_000, 500_000, "c", cached=400_000) == 1.2 + 0.2 + 2.0
    assert budget.compute_cost(1_000_000, 500_000, "gpt-4o", cached=400_000) == 2.0
