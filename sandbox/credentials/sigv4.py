"""AWS Signature Version 4 (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv.html)."""

from __future__ import annotations

import hashlib
import hmac
import time
from dataclasses import dataclass, replace
from urllib.parse import quote, unquote, urlsplit

from sandbox.credentials.placement import set_header
from sandbox.wire.exchange import WireRequest

ALGORITHM = "AWS4-HMAC-SHA256"
_UNRESERVED = "-_.~"


@dataclass(frozen=True)
class AwsKey:
    """An access key; `session` is the session token of temporary credentials."""

    identity: str
    secret: str
    session: str = ""


def sign_request(
    request: WireRequest, key: AwsKey, region: str, service: str, wall: float
) -> WireRequest:
    """The request with its date, content digest (S3), session token and signature.

    Signed are the host, the content type, the range and all `x-amz-` headers, the path, the query
    and the body. `wall` is the time in seconds since 1970.
    """
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(wall))
    digest = hashlib.sha256(request.body).hexdigest()
    request = set_header(_strip_signature_headers(request), "X-Amz-Date", stamp)
    if service == "s3":
        request = set_header(request, "X-Amz-Content-Sha256", digest)
    if key.session:
        request = set_header(request, "X-Amz-Security-Token", key.session)
    signed = _list_signed_headers(request)
    canonical = "\n".join(
        [
            request.method,
            _encode_path(request.url, service),
            _encode_query(request.url),
            *(f"{name}:{value}" for name, value in signed),
            "",
            ";".join(name for name, _ in signed),
            digest,
        ]
    )
    scope = f"{stamp[:8]}/{region}/{service}/aws4_request"
    hashed = hashlib.sha256(canonical.encode()).hexdigest()
    signature = hmac.new(
        _derive_key(key.secret, stamp[:8], region, service),
        "\n".join([ALGORITHM, stamp, scope, hashed]).encode(),
        "sha256",
    ).hexdigest()
    names = ";".join(name for name, _ in signed)
    value = (
        f"{ALGORITHM} Credential={key.identity}/{scope}, SignedHeaders={names}, "
        f"Signature={signature}"
    )
    return set_header(request, "Authorization", value)


def _strip_signature_headers(request: WireRequest) -> WireRequest:
    """The request without headers of the sandbox's that belong to the signature."""
    ours = ("x-amz-date", "x-amz-content-sha256", "x-amz-security-token", "authorization")
    kept = tuple((name, value) for name, value in request.headers if name.lower() not in ours)
    return replace(request, headers=kept)


def _list_signed_headers(request: WireRequest) -> list[tuple[str, str]]:
    found: dict[str, list[str]] = {"host": [urlsplit(request.url).netloc.lower()]}
    for name, value in request.headers:
        lower = name.lower()
        if lower in ("content-type", "range") or lower.startswith("x-amz-"):
            found.setdefault(lower, []).append(" ".join(value.split()))
    return sorted((name, ",".join(values)) for name, values in found.items())


def _encode_path(url: str, service: str) -> str:
    """The canonical path: S3 encodes each segment once, other services encode the result again."""
    path = urlsplit(url).path or "/"
    segments = [quote(unquote(segment), safe=_UNRESERVED) for segment in path.split("/")]
    once = "/".join(segments)
    return once if service == "s3" else quote(once, safe="/" + _UNRESERVED)


def _encode_query(url: str) -> str:
    pairs = []
    for pair in urlsplit(url).query.split("&"):
        if pair:
            name, _, value = pair.partition("=")
            pairs.append(tuple(quote(unquote(part), safe=_UNRESERVED) for part in (name, value)))
    return "&".join(f"{name}={value}" for name, value in sorted(pairs))


def _derive_key(secret: str, date: str, region: str, service: str) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in (date, region, service, "aws4_request"):
        key = hmac.new(key, part.encode(), "sha256").digest()
    return key
