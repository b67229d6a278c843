import pytest
from server import from_roman
from toolwright import ToolError


@pytest.mark.parametrize(("numeral", "number"), [("XIV", 14), ("IIII", 4), ("mdc", 1600), ("I", 1)])
def test_normal(numeral, number):
    assert from_roman(numeral=numeral) == {"number": number}


def test_boundary_the_longest():
    assert from_roman(numeral="M" * 40)["number"] == 40_000


@pytest.mark.parametrize("numeral", ["", "abc", "X V", "İ"])
def test_error_no_numeral(numeral):
    with pytest.raises(ToolError, match="not a Roman numeral"):
        from_roman(numeral=numeral)
