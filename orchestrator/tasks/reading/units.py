"""Units of measurement, currencies, countries and languages as tasks and schemas name them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Unit:
    """A unit: what it measures, and how many of the measure's base units it is; None where two
    units of the measure have no factor between them.
    """

    name: str
    measure: str
    factor: Fraction | None


def _list_units() -> Mapping[str, Unit]:
    rows: tuple[tuple[str, str, str | None, str], ...] = (
        ("mm", "length", "1/1000", "mm millimetre millimetres millimeter millimeters"),
        ("cm", "length", "1/100", "cm centimetre centimetres centimeter centimeters"),
        ("m", "length", "1", "m metre metres meter meters"),
        ("km", "length", "1000", "km kilometre kilometres kilometer kilometers kms"),
        ("mi", "length", "1609344/1000", "mi mile miles"),
        ("ft", "length", "3048/10000", "ft foot feet"),
        ("nmi", "length", "1852", "nmi"),
        ("g", "mass", "1", "g gram grams gramme grammes"),
        ("kg", "mass", "1000", "kg kilo kilos kilogram kilograms"),
        ("t", "mass", "1000000", "tonne tonnes"),
        ("lb", "mass", "45359237/100000", "lb lbs"),
        ("ms", "time", "1/1000", "ms millisecond milliseconds millis"),
        ("s", "time", "1", "s sec secs second seconds"),
        ("min", "time", "60", "min mins minute minutes"),
        ("h", "time", "3600", "h hr hrs hour hours"),
        ("d", "time", "86400", "d day days"),
        ("week", "time", "604800", "week weeks"),
        ("month", "calendar", None, "month months"),
        ("year", "calendar", None, "year years"),
        ("celsius", "temperature", None, "°c celsius centigrade"),
        ("fahrenheit", "temperature", None, "°f fahrenheit"),
        ("kelvin", "temperature", None, "kelvin"),
        ("%", "share", None, "% percent percentage pct"),
        ("byte", "data", "1", "byte bytes"),
        ("kB", "data", "1000", "kb kilobyte kilobytes"),
        ("MB", "data", "1000000", "mb megabyte megabytes"),
        ("GB", "data", "1000000000", "gb gigabyte gigabytes"),
        ("km/h", "speed", None, "km/h kmh kph"),
        ("m/s", "speed", None, "m/s"),
        ("kn", "speed", None, "kn knot knots"),
    )
    return {
        alias: Unit(name, measure, None if factor is None else Fraction(factor))
        for name, measure, factor, aliases in rows
        for alias in aliases.split()
    }


UNITS = _list_units()


def convert_number(number: int | float, given: Unit, wanted: Unit) -> int | float | None:
    """A number of one unit in another; None where there is no exact factor between them."""
    if given.name == wanted.name:
        return number
    if given.measure != wanted.measure or given.factor is None or wanted.factor is None:
        return None
    exact = Fraction(str(number)) * given.factor / wanted.factor
    return int(exact) if exact.denominator == 1 else float(exact)


CURRENCIES = frozenset(
    "AED AFN ALL AMD ARS AUD AZN BAM BDT BGN BHD BND BOB BRL BTC BWP BYN CAD CHF CLP CNY COP CRC "
    "CZK DKK DOP DZD EGP ETB ETH EUR GBP GEL GHS HKD HRK HUF IDR ILS INR IQD IRR ISK JMD JOD JPY "
    "KES KHR KRW KWD KZT LAK LBP LKR MAD MDL MKD MMK MNT MOP MUR MXN MYR NGN NOK NPR NZD OMR PAB "
    "PEN PHP PKR PLN PYG QAR RON RSD RUB SAR SEK SGD THB TND TRY TWD TZS UAH UGX USD UYU UZS VND "
    "XAF XOF YER ZAR ZMW".split()
)
WORDLIKE = frozenset("all bam bob cop dop eth gel kes lak mad mop pen ron rub sos top try".split())
"""Codes that are words in lower case."""
CURRENCY_WORDS: Mapping[str, str] = {
    "euro": "EUR",
    "euros": "EUR",
    "yen": "JPY",
    "sterling": "GBP",
    "yuan": "CNY",
    "renminbi": "CNY",
    "rupees": "INR",
    "zloty": "PLN",
    "us dollar": "USD",
    "us dollars": "USD",
    "swiss franc": "CHF",
    "swiss francs": "CHF",
    "norwegian krone": "NOK",
    "norwegian kroner": "NOK",
    "danish kroner": "DKK",
    "swedish kronor": "SEK",
}
SIGNS: Mapping[str, str] = {"€": "EUR", "£": "GBP"}
"""Signs of one currency; of `$`, `¥` and `kr` there are several."""
LANGUAGES: Mapping[str, str] = {
    "arabic": "ar",
    "chinese": "zh",
    "danish": "da",
    "dutch": "nl",
    "english": "en",
    "finnish": "fi",
    "french": "fr",
    "german": "de",
    "greek": "el",
    "hindi": "hi",
    "italian": "it",
    "japanese": "ja",
    "korean": "ko",
    "norwegian": "no",
    "polish": "pl",
    "portuguese": "pt",
    "russian": "ru",
    "spanish": "es",
    "swedish": "sv",
    "turkish": "tr",
    "ukrainian": "uk",
}
COUNTRIES: Mapping[str, str] = {
    "australia": "AU",
    "austria": "AT",
    "belgium": "BE",
    "brazil": "BR",
    "canada": "CA",
    "china": "CN",
    "denmark": "DK",
    "finland": "FI",
    "france": "FR",
    "germany": "DE",
    "greece": "GR",
    "iceland": "IS",
    "india": "IN",
    "ireland": "IE",
    "italy": "IT",
    "japan": "JP",
    "mexico": "MX",
    "netherlands": "NL",
    "new zealand": "NZ",
    "norway": "NO",
    "poland": "PL",
    "portugal": "PT",
    "spain": "ES",
    "sweden": "SE",
    "switzerland": "CH",
    "turkey": "TR",
    "ukraine": "UA",
    "united kingdom": "GB",
    "united states": "US",
}
SYNONYMS: Mapping[str, frozenset[str]] = {
    "celsius": frozenset({"°c", "centigrade"}),
    "c": frozenset({"°c", "celsius", "centigrade"}),
    "metric": frozenset({"°c", "celsius", "centigrade", "kilometres", "kilometers"}),
    "fahrenheit": frozenset({"°f"}),
    "f": frozenset({"°f", "fahrenheit"}),
    "imperial": frozenset({"°f", "fahrenheit", "miles"}),
    "kelvin": frozenset({"k"}),
    "km": frozenset({"kilometres", "kilometers", "kilometre", "kilometer"}),
    "mi": frozenset({"miles", "mile"}),
    "asc": frozenset({"ascending", "upwards"}),
    "ascending": frozenset({"asc"}),
    "desc": frozenset({"descending", "downwards"}),
    "descending": frozenset({"desc"}),
    **{code: frozenset({word}) for word, code in LANGUAGES.items()},
    **{code.lower(): frozenset({word}) for word, code in CURRENCY_WORDS.items() if " " not in word},
}
"""Other words for an enumeration's own words."""
