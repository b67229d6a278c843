from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from sandbox.bundle.credential import (
    Credential,
    CredentialPlace,
    CredentialValue,
    TokenEndpoint,
    parse_credential,
    render_credential,
)
from sandbox.bundle.model import Bundle, Provenance, read_bundle, write_bundle
from sandbox.errors import BundleInvalid

WHOLE = Credential(
    'acme "x"',
    "template",
    values=(
        CredentialValue("inner", "json", fields=(("a b", "{secret.user}"), ("ü", "{{x}}"))),
        CredentialValue(
            "sig",
            "hmac",
            "{method}\n{inner}",
            key="{secret.key}",
            key_encoding="base64",
            hash="sha512",
            encoding="base64url",
        ),
        CredentialValue("tok", "jwt", key="{secret}", algorithm="RS256", key_id="k", seconds=60),
    ),
    places=(CredentialPlace("header", "X-Sig", "v1={sig}"), CredentialPlace("body", "/a/b")),
    given=True,
)
OTHERS = (
    Credential("k", "apiKey", "query", "key"),
    Credential(
        "o", "oauth2", tokens=TokenEndpoint("https://a.test/t", "", ("password",), ("a:b",))
    ),
    Credential("aws", "aws-sigv4", region="eu-1", service="s3"),
)


@pytest.mark.parametrize("credential", [WHOLE, *OTHERS], ids=lambda c: c.kind)
def test_a_credential_comes_back_from_toml_as_it_was(credential: Credential) -> None:
    text = "\n".join(render_credential(credential))
    assert parse_credential(tomllib.loads(text)["credentials"][0]) == credential


def test_a_plain_credential_is_four_lines() -> None:
    assert render_credential(OTHERS[0])[1:] == [
        'name = "k"',
        'kind = "apiKey"',
        'location = "query"',
        'parameter = "key"',
    ]


def test_the_sandbox_is_told_nothing_of_templates_and_endpoints() -> None:
    assert set(WHOLE.to_public()) == {"name", "kind", "location", "parameter"}


PLACE = '[[places]]\nlocation="header"\nparameter="X-K"\n'
TEMPLATE = f'name="a"\nkind="template"\n{PLACE}'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('kind="apiKey"', "lacks a key"),
        ('name="a"\nkind="magic"', "kind is 'magic'"),
        ('name="a"\nkind="apiKey"\nsecret="x"', "secret is no key"),
        ('name=7\nkind="apiKey"', "name is no text"),
        ('name="a"\nkind="template"', "needs at least one"),
        (f'name="a"\nkind="apiKey"\n{PLACE}', "places belong to a template"),
        ('name="a"\nkind="aws-sigv4"\nregion="r"', "region and a service"),
        ('name="a"\nkind="oauth2"\ntokens={url="ftp://a/b"}', "no absolute http"),
        ('name="a"\nkind="oauth2"\ntokens={url="https://u:p@a/b"}', "no absolute http"),
        ('name="a"\nkind="oauth2"\ntokens={url="https://a/b#c"}', "no absolute http"),
        ('name="a"\nkind="oauth2"\ntokens={grants=["magic"]}', "none of client_credentials"),
        ('name="a"\nkind="oauth2"\ntokens={scopes=["a b"]}', "no word"),
        ('name="a"\nkind="oauth2"\ntokens=3', "not a table"),
        (TEMPLATE.replace("X-K", "Host"), "no header to be set"),
        (TEMPLATE.replace("X-K", "Content-Length"), "no header to be set"),
        (TEMPLATE.replace("X-K", "X K"), "no header to be set"),
        (TEMPLATE + 'value="{nonsense}"', "{nonsense} names nothing"),
        (TEMPLATE + 'value="{secret.a-b}"', "names nothing"),
        (TEMPLATE + 'value="{secret"', "write it twice"),
        (TEMPLATE + 'value="}"', "write it twice"),
        (TEMPLATE + '[[values]]\nname="body"', "is taken"),
        (TEMPLATE + '[[values]]\nname="a"\ntext="{b}"\n[[values]]\nname="b"', "{b} names nothing"),
        (TEMPLATE + '[[values]]\nname="a"\ntext="{a}"', "{a} names nothing"),
        (TEMPLATE + '[[values]]\nname="a"\nmake="hmac"', "key is missing"),
        (TEMPLATE + '[[values]]\nname="a"\nmake="exec"', "make is 'exec'"),
        (TEMPLATE + '[[values]]\nname="a"\nhash="crc"', "hash is 'crc'"),
        (TEMPLATE + '[[values]]\nname="a"\nseconds=1', "seconds is no number"),
        (TEMPLATE + '[[values]]\nname="a"\nfields={a=1}', "fields is no text"),
        (TEMPLATE + f'[[values]]\nname="a"\ntext="{"x" * 3000}"', "at most 2000"),
        (TEMPLATE + "".join(f'[[values]]\nname="v{n}"\n' for n in range(9)), "at most 8"),
    ],
)
def test_what_is_wrong_with_a_credential_is_said(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=r".") as raised:
        parse_credential(tomllib.loads(text))
    assert reason in str(raised.value)


def bundle(*credentials: Credential) -> Bundle:
    return Bundle(
        "pets", 1, "Pets", "https://a.test", "", (), Provenance("", ""), credentials=credentials
    )


def test_a_bundle_keeps_its_templates(tmp_path: Path) -> None:
    made = bundle(WHOLE, *OTHERS)
    write_bundle(made, tmp_path)
    assert read_bundle(tmp_path) == made
    assert read_bundle(tmp_path).compute_digest() == made.compute_digest()


def test_a_bundle_with_a_wrong_credential_says_which(tmp_path: Path) -> None:
    write_bundle(bundle(*OTHERS), tmp_path)
    path = tmp_path / "bundle.toml"
    path.write_text(path.read_text().replace('service = "s3"\n', ""))
    with pytest.raises(BundleInvalid, match=r"bundle\.toml.*credentials\[2\].*region"):
        read_bundle(tmp_path)


def test_two_credentials_of_one_name_are_refused(tmp_path: Path) -> None:
    write_bundle(bundle(OTHERS[0], OTHERS[0]), tmp_path)
    with pytest.raises(BundleInvalid, match="there already"):
        read_bundle(tmp_path)
