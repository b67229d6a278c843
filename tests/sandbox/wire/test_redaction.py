from __future__ import annotations

import base64
import html
import json
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sandbox.wire.redaction import ANYWHERE, MARK, Redaction, list_sensitive_parts

CANARY = 'Tw-c4n/ry+7"é\\x&Q=='
SECRETS = st.text(st.characters(min_codepoint=33, max_codepoint=0x2FFF, categories=["L", "N", "P"]))
LONG = SECRETS.filter(lambda text: len(text) >= 8 and not text.isdigit())
NEUTRAL = st.text("·", max_size=5)


def escaped_json(text: str) -> str:
    units = text.encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


FORMS: dict[str, Callable[[str], bytes]] = {
    "plain": lambda s: s.encode(),
    "percent": lambda s: quote(s, safe="").encode(),
    "percent, lower case": lambda s: quote(s, safe="").lower().encode(),
    "every byte percent": lambda s: "".join(f"%{b:02X}" for b in s.encode()).encode(),
    "percent twice": lambda s: quote(quote(s, safe=""), safe="").encode(),
    "form": lambda s: quote_plus(s).encode(),
    "JSON": lambda s: json.dumps(s).encode(),
    "JSON, not ASCII": lambda s: json.dumps(s, ensure_ascii=False).encode(),
    "JSON with slashes": lambda s: json.dumps(s).replace("/", "\\/").encode(),
    "JSON, every character": lambda s: escaped_json(s).encode(),
    "HTML": lambda s: html.escape(s).encode(),
    "HTML, every character": lambda s: "".join(f"&#{ord(c)};" for c in s).encode(),
    "HTML, every character in hex": lambda s: "".join(f"&#x{ord(c):X};" for c in s).encode(),
    "hex": lambda s: s.encode().hex().encode(),
    "HEX": lambda s: s.encode().hex().upper().encode(),
    "hex with colons": lambda s: s.encode().hex(":").encode(),
    "base64": lambda s: base64.b64encode(s.encode()),
    "base64 without padding": lambda s: base64.b64encode(s.encode()).rstrip(b"="),
    "URL-safe base64": lambda s: base64.urlsafe_b64encode(s.encode()),
    "base64 in a URL": lambda s: quote(base64.b64encode(s.encode()), safe="").encode(),
}


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=20)
@given(secret=LONG, before=NEUTRAL, after=NEUTRAL)
def test_no_form_of_a_secret_is_left(form: str, secret: str, before: str, after: str) -> None:
    echoed = FORMS[form](secret)
    clean = Redaction([secret]).redact_bytes(before.encode() + echoed + after.encode())
    assert echoed not in clean or echoed in MARK.encode()
    assert MARK.encode() in clean


@settings(max_examples=20)
@given(secret=LONG, before=st.binary(max_size=7), after=st.binary(max_size=7))
def test_base64_at_any_alignment_gives_less_than_two_bytes_of_a_secret_away(
    secret: str, before: bytes, after: bytes
) -> None:
    content = base64.b64encode(before + secret.encode() + after)
    clean = Redaction([secret]).redact_bytes(content)
    assert MARK.encode() in clean
    for piece in clean.split(MARK.encode()):
        assert len(piece.rstrip(b"=")) <= (max(len(before), len(after)) * 8 + 11) // 6 + 1


CASED = st.text(
    "ab\u00df\u03c3\u03c2\u03a3\u039f\u0394\u01c5\u0149\u0390\ufb01\u0130\u0131\u017fK\u00c5\u00b5\u00e9\u04160",
    min_size=ANYWHERE,
    max_size=20,
)
"""Secrets whose case is no matter of ASCII: letters that become several, have a third case, or end
a word otherwise.
"""
CASES: dict[str, Callable[[str], str]] = {
    "lower": str.lower,
    "upper": str.upper,
    "title": str.title,
    "capitalized": str.capitalize,
    "swapped": str.swapcase,
    "folded": str.casefold,
    "upper, then lower": lambda s: s.upper().lower(),
    "lower, then upper": lambda s: s.lower().upper(),
}


@pytest.mark.parametrize("case", CASES)
@settings(max_examples=25)
@given(secret=LONG | CASED)
@example(secret="\u039f\u0394\u03a5\u03a3\u03a3\u0395\u03a5\u03a3")
@example(secret="straße-straße")
def test_a_change_of_case_does_not_hide_a_secret(case: str, secret: str) -> None:
    changed = CASES[case](secret)
    clean = Redaction([secret])
    for before, after in (("<", ">"), ("", ""), ("a ", " b")):
        told = clean.redact_text(f"{before}{changed}{after}")
        assert changed not in told or changed in MARK
        assert MARK in told
    assert MARK in clean.redact_text(quote(changed, safe=""))


@settings(max_examples=30)
@given(st.text(), st.lists(LONG, max_size=3))
def test_a_text_without_the_secrets_stays_what_it_is(text: str, secrets: list[str]) -> None:
    clean = Redaction(secrets).redact_text(text)
    assert clean == text or MARK in clean


def test_secrets_that_are_split_over_headers_are_found() -> None:
    half = len(CANARY) // 2
    headers = (("x-a", "1"), ("x-b", CANARY[:half]), ("x-c", CANARY[half:]), ("x-d", "2"))
    clean = Redaction([CANARY]).redact_headers(headers)
    assert clean == (("x-a", "1"), ("x-b", MARK), ("x-c", MARK), ("x-d", "2"))


def test_header_names_and_json_keys_are_cleaned_too() -> None:
    clean = Redaction(["canary-77"])
    assert clean.redact_headers((("x-canary-77", "v"),)) == ((f"x-{MARK}", "v"),)
    assert clean.redact_json({"a": ["canary-77", {"canary-77": 1}]}) == {"a": [MARK, {MARK: 1}]}


@pytest.mark.parametrize("secret", ["abc", "42", "x"])
def test_a_very_short_secret_is_found_by_itself_and_does_not_blot_out_text(secret: str) -> None:
    clean = Redaction([secret])
    assert clean.redact_text(f"key={secret};") == f"key={MARK};"
    assert clean.redact_text(f"q{secret}z") == f"q{secret}z"


def test_a_number_is_not_found_inside_a_longer_number() -> None:
    clean = Redaction(["123456"])
    assert clean.redact_text('{"id": 91234567}') == '{"id": 91234567}'
    assert clean.redact_text("pin 123456") == f"pin {MARK}"


def test_what_is_sensitive_of_a_secret_leaves_public_names_alone() -> None:
    assert list_sensitive_parts("admin:hunter22") == ("admin:hunter22", "hunter22")
    secret = json.dumps({"client_id": "my-app", "client_secret": "s3cr3t-9"})
    assert list_sensitive_parts(secret) == (secret, "s3cr3t-9")
    pem = "-----BEGIN PRIVATE KEY-----\nMIIabc\nDEFghi\n-----END PRIVATE KEY-----"
    key = list_sensitive_parts(json.dumps({"key": pem}))
    assert "MIIabc" in key
    assert "-----BEGIN PRIVATE KEY-----" not in key


def test_values_of_one_request_are_removed_beside_the_secrets() -> None:
    clean = Redaction(["canary-77"]).extend_with(["f00d" * 16, "a/b+c", "no"])
    assert (
        clean.redact_text("canary-77 " + "f00d" * 16 + " a%2Fb%2Bc no")
        == f"{MARK} {MARK} {MARK} no"
    )


@given(st.binary(), st.binary(), st.integers(0, 2))
def test_a_secret_in_the_bytes_of_base64_is_taken_out_and_it_stays_base64(
    before: bytes, after: bytes, shift: int
) -> None:
    held = before + b"\0" * shift + CANARY.encode() + after
    clean = Redaction([CANARY]).redact_base64(base64.b64encode(held).decode())
    left = base64.b64decode(clean, validate=True)
    assert MARK.encode() in left
    assert CANARY.encode() not in left


def test_base64_that_spells_a_long_secret_is_withheld_and_a_short_one_is_chance() -> None:
    spelled = "abcd" * 20 + "canarySecret" + "abcd" * 20
    assert base64.b64decode(Redaction(["canarySECRET"]).redact_base64(spelled)) == MARK.encode()
    assert Redaction(["test", "canary"]).redact_base64(spelled + "test") == spelled + "test"


def test_what_is_no_base64_is_a_text() -> None:
    assert Redaction([CANARY]).redact_base64(f"no base64: {CANARY}") == f"no base64: {MARK}"
