"""Roman numerals."""

from toolwright import ToolError, tool

DIGITS = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}


@tool
def from_roman(numeral):
    """What the letters add up to, a smaller one before a larger one subtracted: also IIII is 4."""
    values = [DIGITS.get(letter, 0) for letter in numeral.upper()]
    if not values or 0 in values:
        raise ToolError("not a Roman numeral")
    pairs = zip(values, [*values[1:], 0], strict=True)
    return {"number": sum(-one if one < after else one for one, after in pairs)}
