from __future__ import annotations

import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import (
    ECDSA,
    SECP256R1,
    SECP384R1,
    EllipticCurvePublicKey,
    generate_private_key,
)
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key as rsa_key
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from sandbox.bundle.credential import Credential, CredentialPlace, CredentialValue
from sandbox.credentials import templates
from sandbox.credentials.sigv4 import AwsKey, sign_request
from sandbox.credentials.templates import SignedRequest, SigningInputs, fill_template, sign_aws
from sandbox.errors import CredentialRefused
from sandbox.wire.exchange import WireRequest

MOMENT = SigningInputs(1_700_000_000.25, "n0nce")
EXAMPLE = AwsKey("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
S3 = AwsKey("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")


def filled(
    *places: CredentialPlace,
    secret: str = "s3cr3t",
    values: tuple[CredentialValue, ...] = (),
    request: WireRequest | None = None,
) -> SignedRequest:
    credential = Credential("c", "template", values=values, places=places)
    return fill_template(request or post({"a": 1}), credential, secret, MOMENT)


def post(body: Any) -> WireRequest:
    headers = (("Content-Type", "application/json"),)
    return WireRequest("POST", "https://api.test/v1/x?b=2", headers, json.dumps(body).encode())


def at(stamp: str) -> float:
    return datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("request_", "key", "service", "stamp", "signature"),
    [
        (
            WireRequest("GET", "https://example.amazonaws.com/"),
            EXAMPLE,
            "service",
            "20150830T123600Z",
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
        ),
        (
            WireRequest(
                "GET",
                "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08",
                (("Content-Type", "application/x-www-form-urlencoded; charset=utf-8"),),
            ),
            EXAMPLE,
            "iam",
            "20150830T123600Z",
            "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7",
        ),
        (
            WireRequest(
                "GET",
                "https://examplebucket.s3.amazonaws.com/test.txt",
                (("Range", "bytes=0-9"),),
            ),
            S3,
            "s3",
            "20130524T000000Z",
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
        ),
        (
            WireRequest("GET", "https://examplebucket.s3.amazonaws.com/?lifecycle"),
            S3,
            "s3",
            "20130524T000000Z",
            "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
        ),
        (
            WireRequest("GET", "https://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J"),
            S3,
            "s3",
            "20130524T000000Z",
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
        ),
    ],
    ids=["get-vanilla", "iam", "s3-object", "s3-lifecycle", "s3-list"],
)
def test_aws_signatures_are_those_of_the_documentation(
    request_: WireRequest, key: AwsKey, service: str, stamp: str, signature: str
) -> None:
    signed = sign_request(request_, key, "us-east-1", service, at(stamp))
    assert (signed.get_header("Authorization") or "").endswith(f"Signature={signature}")
    assert signed.get_header("X-Amz-Date") == stamp


def test_the_sandboxs_own_aws_headers_are_replaced_and_a_session_token_is_signed() -> None:
    forged = (("X-Amz-Date", "19700101T000000Z"), ("x-amz-security-token", "theirs"))
    request = WireRequest("GET", "https://s.test/", forged)
    key = AwsKey("A", "B", "session-1")
    signed = sign_request(request, key, "r", "s", MOMENT.wall)
    names = [name.lower() for name, _ in signed.headers]
    assert names.count("x-amz-date") == names.count("x-amz-security-token") == 1
    assert signed.get_header("x-amz-security-token") == "session-1"
    assert "x-amz-security-token" in (signed.get_header("Authorization") or "")


@pytest.mark.parametrize(
    "secret",
    ["AKID:sk", '{"access_key_id": "AKID", "secret_access_key": "sk"}'],
)
def test_an_aws_secret_is_a_pair_or_an_object(secret: str) -> None:
    credential = Credential("a", "aws-sigv4", region="r", service="s")
    signed = sign_aws(WireRequest("GET", "https://s.test/"), credential, secret, MOMENT)
    value = signed.request.get_header("Authorization") or ""
    assert "Credential=AKID/" in value
    assert "sk" not in value.split("Signature=")[0]
    with pytest.raises(CredentialRefused, match="ACCESS_KEY_ID"):
        sign_aws(WireRequest("GET", "https://s.test/"), credential, "no-pair", MOMENT)


def test_a_template_fills_headers_queries_cookies_and_bodies() -> None:
    made = filled(
        CredentialPlace("header", "X-Key", "Token {secret}"),
        CredentialPlace("query", "key", "{secret}"),
        CredentialPlace("cookie", "sid", "{secret}"),
        CredentialPlace("body", "/auth/key", "{secret}"),
        CredentialPlace("header", "X-At", "{timestamp}/{timestamp_ms}/{timestamp_iso}/{nonce}"),
    ).request
    assert made.get_header("X-Key") == "Token s3cr3t"
    assert made.url == "https://api.test/v1/x?b=2&key=s3cr3t"
    assert made.get_header("Cookie") == "sid=s3cr3t"
    assert json.loads(made.body) == {"a": 1, "auth": {"key": "s3cr3t"}}
    assert made.get_header("X-At") == "1700000000/1700000000250/2023-11-14T22:13:20Z/n0nce"


def test_what_the_sandbox_put_there_itself_is_replaced() -> None:
    theirs = WireRequest(
        "GET", "https://api.test/x?k%65y=1&a=2", (("x-key", "no"), ("Cookie", "sid=1; b=2"))
    )
    made = filled(
        CredentialPlace("query", "key"),
        CredentialPlace("header", "X-Key"),
        CredentialPlace("cookie", "sid"),
        request=theirs,
    ).request
    assert made.url == "https://api.test/x?a=2&key=s3cr3t"
    assert made.get_header("cookie") == "b=2; sid=s3cr3t"
    assert [name for name, _ in made.headers if name.lower() == "x-key"] == ["X-Key"]


def test_a_form_field_is_filled() -> None:
    form = (("Content-Type", "application/x-www-form-urlencoded"),)
    request = WireRequest("POST", "https://api.test/x", form, b"a=1&token=theirs")
    made = filled(CredentialPlace("body", "token"), secret="a b&c", request=request).request
    assert made.body == b"a=1&token=a+b%26c"


@pytest.mark.parametrize(
    ("place", "request_"),
    [
        (CredentialPlace("body", "/k"), WireRequest("GET", "https://api.test/x")),
        (CredentialPlace("body", "/k"), post([1])),
        (CredentialPlace("body", "/a/k"), post({"a": 1})),
        (CredentialPlace("body", "field"), post({"a": 1})),
    ],
)
def test_a_body_without_the_place_is_refused(place: CredentialPlace, request_: WireRequest) -> None:
    with pytest.raises(CredentialRefused, match="body"):
        filled(place, request=request_)


def test_a_secret_with_a_line_break_is_refused_and_not_told() -> None:
    with pytest.raises(CredentialRefused) as raised:
        filled(CredentialPlace("header", "X-Key"), secret="a\r\nX-Evil: 1")
    assert "Evil" not in str(raised.value)


def test_an_hmac_covers_the_request_as_the_earlier_places_left_it() -> None:
    value = CredentialValue(
        "sig", "hmac", "{method}\n{host}\n{path}\n{query}\n{body}", key="{secret.key}"
    )
    secret = json.dumps({"key": "kk", "id": "me"})
    made = filled(
        CredentialPlace("query", "id", "{secret.id}"),
        CredentialPlace("header", "X-Signature", "v1={sig}"),
        secret=secret,
        values=(value,),
    )
    text = b'POST\napi.test\n/v1/x\nb=2&id=me\n{"a": 1}'
    wanted = hmac.new(b"kk", text, "sha256").hexdigest()
    assert made.request.get_header("X-Signature") == f"v1={wanted}"
    assert wanted in made.passing


@pytest.mark.parametrize("encoding", ["base64", "hex"])
def test_an_hmac_key_may_be_encoded_and_its_hash_chosen(encoding: Any) -> None:
    key = b"\x00\xff\x10key"
    written = base64.b64encode(key).decode() if encoding == "base64" else key.hex()
    inner = CredentialValue("digest", "hash", "{nonce}{body}", encoding="hex")
    value = CredentialValue(
        "sig",
        "hmac",
        "{digest}",
        key="{secret}",
        key_encoding=encoding,
        hash="sha512",
        encoding="base64",
    )
    made = filled(
        CredentialPlace("header", "X"),
        CredentialPlace("header", "S", "{sig}"),
        values=(inner, value),
        secret=written,
    )
    digest = hashlib.sha256(b'n0nce{"a": 1}').hexdigest().encode()
    wanted = base64.b64encode(hmac.new(key, digest, "sha512").digest()).decode()
    assert made.request.get_header("S") == wanted


def test_base64_of_json_escapes_what_json_must() -> None:
    inner = CredentialValue(
        "inner", "json", fields=(("user", "{secret.user}"), ("token", "{secret.t}"))
    )
    outer = CredentialValue("outer", "base64", "{inner}")
    secret = json.dumps({"user": 'a"b', "t": "é"})
    made = filled(
        CredentialPlace("header", "X", "Auth {outer}"), values=(inner, outer), secret=secret
    )
    text = (made.request.get_header("X") or "").removeprefix("Auth ")
    assert json.loads(base64.b64decode(text)) == {"user": 'a"b', "token": "é"}


def test_braces_that_are_doubled_stand_for_themselves() -> None:
    assert (
        filled(CredentialPlace("header", "X", "{{{secret}}}")).request.get_header("X") == "{s3cr3t}"
    )


def test_a_missing_field_of_the_secret_is_told_by_name() -> None:
    with pytest.raises(CredentialRefused, match="'key'"):
        filled(CredentialPlace("header", "X", "{secret.key}"), secret="plain")


def test_what_has_no_secret_in_it_is_not_hidden_from_answers() -> None:
    made = filled(
        CredentialPlace("header", "X-At", "{timestamp}"), CredentialPlace("header", "X", "{secret}")
    )
    assert made.passing == ("s3cr3t",)


def parts(token: str) -> tuple[dict[str, Any], dict[str, Any], bytes, bytes]:
    head, claims, signature = token.split(".")
    decoded = [base64.urlsafe_b64decode(p + "=" * (-len(p) % 4)) for p in (head, claims, signature)]
    signed = f"{head}.{claims}".encode()
    return json.loads(decoded[0]), json.loads(decoded[1]), decoded[2], signed


def test_a_token_with_a_shared_secret_is_the_one_of_the_rfc() -> None:
    # RFC 7515 appendix A.1 differs in its white space; this one's is ours.
    token = templates.encode_jwt({"iss": "joe"}, b"key", "HS256")
    head, claims, signature, signed = parts(token)
    assert (head, claims) == ({"alg": "HS256", "typ": "JWT"}, {"iss": "joe"})
    assert signature == hmac.new(b"key", signed, "sha256").digest()


def test_a_template_makes_a_token_with_its_claims_and_lifetime() -> None:
    key = generate_private_key(SECP256R1())
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    value = CredentialValue(
        "token",
        "jwt",
        key="{secret.key}",
        algorithm="ES256",
        key_id="{secret.kid}",
        fields=(("iss", "{secret.team}"), ("aud", "https://api.test"), ("jti", "{nonce}")),
        seconds=60,
    )
    made = filled(
        CredentialPlace("header", "Authorization", "Bearer {token}"),
        values=(value,),
        secret=json.dumps({"key": pem, "kid": "K1", "team": "T1"}),
    )
    token = (made.request.get_header("Authorization") or "").removeprefix("Bearer ")
    head, claims, signature, signed = parts(token)
    assert head == {"alg": "ES256", "typ": "JWT", "kid": "K1"}
    assert claims == {
        "iat": 1_700_000_000,
        "exp": 1_700_000_060,
        "iss": "T1",
        "aud": "https://api.test",
        "jti": "n0nce",
    }
    numbers = (int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big"))
    public = key.public_key()
    assert isinstance(public, EllipticCurvePublicKey)
    public.verify(encode_dss_signature(*numbers), signed, ECDSA(SHA256()))
    assert token in made.passing


def test_rsa_signs_and_a_key_of_another_kind_is_refused() -> None:
    key = rsa_key(65537, 2048)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    *_, signature, signed = parts(templates.encode_jwt({}, pem, "RS256"))
    public = key.public_key()
    assert isinstance(public, RSAPublicKey)
    public.verify(signature, signed, PKCS1v15(), SHA256())
    for wrong, algorithm in ((pem, "ES256"), (b"no key", "RS256")):
        with pytest.raises(CredentialRefused):
            templates.encode_jwt({}, wrong, algorithm)


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
def test_a_short_shared_secret_is_used_as_the_api_gave_it(algorithm: str) -> None:
    *_, signature, signed = parts(templates.encode_jwt({"a": 1}, b"\xffk", algorithm))
    assert signature == hmac.new(b"\xffk", signed, f"sha{algorithm[2:]}").digest()


def pem_of(key: Any, password: bytes | None = None) -> bytes:
    hide = BestAvailableEncryption(password) if password else NoEncryption()
    written: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, hide)
    return written


def public_pem(key: Any) -> bytes:
    form = PublicFormat.SubjectPublicKeyInfo
    written: bytes = key.public_key().public_bytes(Encoding.PEM, form)
    return written


RSA, CURVE = rsa_key(65537, 2048), generate_private_key(SECP256R1())


@pytest.mark.parametrize(
    ("key", "algorithm", "reason"),
    [
        (pem_of(rsa_key(65537, 1024)), "RS256", "the private key is not one for RS256"),
        (pem_of(CURVE), "RS256", "the private key is not one for RS256"),
        (pem_of(RSA), "ES256", "the private key is not one for ES256"),
        (pem_of(generate_private_key(SECP384R1())), "ES256", "the private key is not one"),
        (pem_of(Ed25519PrivateKey.generate()), "ES256", "the private key is not one for ES256"),
        (public_pem(RSA), "RS256", "the key for RS256 is no private key in PEM"),
        (public_pem(CURVE), "ES256", "the key for ES256 is no private key in PEM"),
        (pem_of(CURVE, b"word"), "ES256", "the key for ES256 is no private key in PEM"),
        (b"s3cr3t", "RS256", "the key for RS256 is no private key in PEM"),
        (pem_of(RSA), "HS256", "the key is not one for HS256"),
        (b"", "HS256", "the key is not one for HS256"),
    ],
)
def test_a_key_that_cannot_sign_is_refused_and_not_told(
    key: bytes, algorithm: str, reason: str
) -> None:
    with pytest.raises(CredentialRefused, match=reason) as raised:
        templates.encode_jwt({}, key, algorithm)
    assert not key or key.decode() not in str(raised.value)
