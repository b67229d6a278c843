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
    EllipticCurvePublicKey,
    generate_private_key,
)
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key as rsa_key
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from sandbox import jwt
from sandbox.authscheme import Credential, Place, Value
from sandbox.errors import CredentialRefused
from sandbox.exchange import WireRequest
from sandbox.signing import Moment, Signed, fill, sign_aws
from sandbox.sigv4 import AwsKey, sign

MOMENT = Moment(1_700_000_000.25, "n0nce")
EXAMPLE = AwsKey("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
S3 = AwsKey("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")


def filled(
    *places: Place,
    secret: str = "s3cr3t",
    values: tuple[Value, ...] = (),
    request: WireRequest | None = None,
) -> Signed:
    credential = Credential("c", "template", values=values, places=places)
    return fill(request or post({"a": 1}), credential, secret, MOMENT)


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
    signed = sign(request_, key, "us-east-1", service, at(stamp))
    assert (signed.header("Authorization") or "").endswith(f"Signature={signature}")
    assert signed.header("X-Amz-Date") == stamp


def test_the_sandboxs_own_aws_headers_are_replaced_and_a_session_token_is_signed() -> None:
    forged = (("X-Amz-Date", "19700101T000000Z"), ("x-amz-security-token", "theirs"))
    request = WireRequest("GET", "https://s.test/", forged)
    key = AwsKey("A", "B", "session-1")
    signed = sign(request, key, "r", "s", MOMENT.wall)
    names = [name.lower() for name, _ in signed.headers]
    assert names.count("x-amz-date") == names.count("x-amz-security-token") == 1
    assert signed.header("x-amz-security-token") == "session-1"
    assert "x-amz-security-token" in (signed.header("Authorization") or "")


@pytest.mark.parametrize(
    "secret",
    ["AKID:sk", '{"access_key_id": "AKID", "secret_access_key": "sk"}'],
)
def test_an_aws_secret_is_a_pair_or_an_object(secret: str) -> None:
    credential = Credential("a", "aws-sigv4", region="r", service="s")
    signed = sign_aws(WireRequest("GET", "https://s.test/"), credential, secret, MOMENT)
    value = signed.request.header("Authorization") or ""
    assert "Credential=AKID/" in value
    assert "sk" not in value.split("Signature=")[0]
    with pytest.raises(CredentialRefused, match="ACCESS_KEY_ID"):
        sign_aws(WireRequest("GET", "https://s.test/"), credential, "no-pair", MOMENT)


def test_a_template_fills_headers_queries_cookies_and_bodies() -> None:
    made = filled(
        Place("header", "X-Key", "Token {secret}"),
        Place("query", "key", "{secret}"),
        Place("cookie", "sid", "{secret}"),
        Place("body", "/auth/key", "{secret}"),
        Place("header", "X-At", "{timestamp}/{timestamp_ms}/{timestamp_iso}/{nonce}"),
    ).request
    assert made.header("X-Key") == "Token s3cr3t"
    assert made.url == "https://api.test/v1/x?b=2&key=s3cr3t"
    assert made.header("Cookie") == "sid=s3cr3t"
    assert json.loads(made.body) == {"a": 1, "auth": {"key": "s3cr3t"}}
    assert made.header("X-At") == "1700000000/1700000000250/2023-11-14T22:13:20Z/n0nce"


def test_what_the_sandbox_put_there_itself_is_replaced() -> None:
    theirs = WireRequest(
        "GET", "https://api.test/x?k%65y=1&a=2", (("x-key", "no"), ("Cookie", "sid=1; b=2"))
    )
    made = filled(
        Place("query", "key"), Place("header", "X-Key"), Place("cookie", "sid"), request=theirs
    ).request
    assert made.url == "https://api.test/x?a=2&key=s3cr3t"
    assert made.header("cookie") == "b=2; sid=s3cr3t"
    assert [name for name, _ in made.headers if name.lower() == "x-key"] == ["X-Key"]


def test_a_form_field_is_filled() -> None:
    form = (("Content-Type", "application/x-www-form-urlencoded"),)
    request = WireRequest("POST", "https://api.test/x", form, b"a=1&token=theirs")
    made = filled(Place("body", "token"), secret="a b&c", request=request).request
    assert made.body == b"a=1&token=a+b%26c"


@pytest.mark.parametrize(
    ("place", "request_"),
    [
        (Place("body", "/k"), WireRequest("GET", "https://api.test/x")),
        (Place("body", "/k"), post([1])),
        (Place("body", "/a/k"), post({"a": 1})),
        (Place("body", "field"), post({"a": 1})),
    ],
)
def test_a_body_without_the_place_is_refused(place: Place, request_: WireRequest) -> None:
    with pytest.raises(CredentialRefused, match="body"):
        filled(place, request=request_)


def test_a_secret_with_a_line_break_is_refused_and_not_told() -> None:
    with pytest.raises(CredentialRefused) as raised:
        filled(Place("header", "X-Key"), secret="a\r\nX-Evil: 1")
    assert "Evil" not in str(raised.value)


def test_an_hmac_covers_the_request_as_the_earlier_places_left_it() -> None:
    value = Value("sig", "hmac", "{method}\n{host}\n{path}\n{query}\n{body}", key="{secret.key}")
    secret = json.dumps({"key": "kk", "id": "me"})
    made = filled(
        Place("query", "id", "{secret.id}"),
        Place("header", "X-Signature", "v1={sig}"),
        secret=secret,
        values=(value,),
    )
    text = b'POST\napi.test\n/v1/x\nb=2&id=me\n{"a": 1}'
    wanted = hmac.new(b"kk", text, "sha256").hexdigest()
    assert made.request.header("X-Signature") == f"v1={wanted}"
    assert wanted in made.passing


@pytest.mark.parametrize("encoding", ["base64", "hex"])
def test_an_hmac_key_may_be_encoded_and_its_hash_chosen(encoding: Any) -> None:
    key = b"\x00\xff\x10key"
    written = base64.b64encode(key).decode() if encoding == "base64" else key.hex()
    inner = Value("digest", "hash", "{nonce}{body}", encoding="hex")
    value = Value(
        "sig",
        "hmac",
        "{digest}",
        key="{secret}",
        key_encoding=encoding,
        hash="sha512",
        encoding="base64",
    )
    made = filled(
        Place("header", "X"), Place("header", "S", "{sig}"), values=(inner, value), secret=written
    )
    digest = hashlib.sha256(b'n0nce{"a": 1}').hexdigest().encode()
    wanted = base64.b64encode(hmac.new(key, digest, "sha512").digest()).decode()
    assert made.request.header("S") == wanted


def test_base64_of_json_escapes_what_json_must() -> None:
    inner = Value("inner", "json", fields=(("user", "{secret.user}"), ("token", "{secret.t}")))
    outer = Value("outer", "base64", "{inner}")
    secret = json.dumps({"user": 'a"b', "t": "é"})
    made = filled(Place("header", "X", "Auth {outer}"), values=(inner, outer), secret=secret)
    text = (made.request.header("X") or "").removeprefix("Auth ")
    assert json.loads(base64.b64decode(text)) == {"user": 'a"b', "token": "é"}


def test_braces_that_are_doubled_stand_for_themselves() -> None:
    assert filled(Place("header", "X", "{{{secret}}}")).request.header("X") == "{s3cr3t}"


def test_a_missing_field_of_the_secret_is_told_by_name() -> None:
    with pytest.raises(CredentialRefused, match="'key'"):
        filled(Place("header", "X", "{secret.key}"), secret="plain")


def test_what_has_no_secret_in_it_is_not_hidden_from_answers() -> None:
    made = filled(Place("header", "X-At", "{timestamp}"), Place("header", "X", "{secret}"))
    assert made.passing == ("s3cr3t",)


def parts(token: str) -> tuple[dict[str, Any], dict[str, Any], bytes, bytes]:
    head, claims, signature = token.split(".")
    decoded = [base64.urlsafe_b64decode(p + "=" * (-len(p) % 4)) for p in (head, claims, signature)]
    signed = f"{head}.{claims}".encode()
    return json.loads(decoded[0]), json.loads(decoded[1]), decoded[2], signed


def test_a_token_with_a_shared_secret_is_the_one_of_the_rfc() -> None:
    # RFC 7515 appendix A.1 differs in its white space; this one's is ours.
    token = jwt.encode({"iss": "joe"}, b"key", "HS256")
    head, claims, signature, signed = parts(token)
    assert (head, claims) == ({"alg": "HS256", "typ": "JWT"}, {"iss": "joe"})
    assert signature == hmac.new(b"key", signed, "sha256").digest()


def test_a_template_makes_a_token_with_its_claims_and_lifetime() -> None:
    key = generate_private_key(SECP256R1())
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    value = Value(
        "token",
        "jwt",
        key="{secret.key}",
        algorithm="ES256",
        key_id="{secret.kid}",
        fields=(("iss", "{secret.team}"), ("aud", "https://api.test"), ("jti", "{nonce}")),
        seconds=60,
    )
    made = filled(
        Place("header", "Authorization", "Bearer {token}"),
        values=(value,),
        secret=json.dumps({"key": pem, "kid": "K1", "team": "T1"}),
    )
    token = (made.request.header("Authorization") or "").removeprefix("Bearer ")
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
    *_, signature, signed = parts(jwt.encode({}, pem, "RS256"))
    public = key.public_key()
    assert isinstance(public, RSAPublicKey)
    public.verify(signature, signed, PKCS1v15(), SHA256())
    for wrong, algorithm in ((pem, "ES256"), (b"no key", "RS256")):
        with pytest.raises(CredentialRefused):
            jwt.encode({}, wrong, algorithm)
