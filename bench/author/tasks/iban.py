"""International bank account numbers (ISO 13616)."""

from __future__ import annotations

import re

from bench.author.task import Refused, Task, checks

_TEXT = """\
A tool `check_iban(text)` that gives {"valid": true or false, "country": two letters,
"formatted": the number in groups of four}. Spaces are ignored and small letters count as
capitals. It is valid where it has 15 to 34 letters and digits, starts with two letters and two
digits, and its check digits are right (ISO 7064 MOD 97-10, as for every IBAN). Text that does
not begin with two letters and two digits, or has anything else than letters, digits and spaces
in it, or is longer than 60 characters, is refused."""


def check_iban(text: str) -> dict[str, object]:
    plain = text.replace(" ", "").upper()
    if len(text) > 60 or not re.fullmatch(r"[A-Z]{2}\d{2}[A-Z0-9]*", plain, re.ASCII):
        raise Refused
    moved = plain[4:] + plain[:4]
    number = int("".join(str(int(letter, 36)) for letter in moved))
    groups = " ".join(plain[at : at + 4] for at in range(0, len(plain), 4))
    valid = 15 <= len(plain) <= 34 and number % 97 == 1
    return {"valid": valid, "country": plain[:2], "formatted": groups}


TASK = Task(
    "iban",
    _TEXT,
    checks(
        {"check_iban": check_iban},
        [
            ("check_iban", {"text": text})
            for text in (
                "DE89 3704 0044 0532 0130 00",
                "GB82WEST12345698765432",
                "gb82 west 1234 5698 7654 32",
                "FR1420041010050500013M02606",
                "NO9386011117947",
                "MT84MALT011000012345MTLCAST001S",
                "DE89 3704 0044 0532 0130 01",
                "GB82WEST12345698765431",
                "GB28WEST12345698765432",
                "NO93",
                "DE8937040044053201300",
                "AB1234567890123",
                "LC55HEMM000100010012001200023015",
                "",
                "1234",
                "DEXX370400440532013000",
                "DE89-3704-0044",
                "DE89\t3704",
                "É189 3704 0044",
                "D E 8 9 3704004405320130 00",
                "GB82" + "0" * 31,
                "NL91ABNA0417164300",
                "BE68539007547034",
                "CH9300762011623852957",
                "x" * 61,
                "GB14123456",
                "NO2812345678901",
                "MT05" + "A" * 30,
                "DE50" + "1" * 32,
            )
        ],
    ),
)
