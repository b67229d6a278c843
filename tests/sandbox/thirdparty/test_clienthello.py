"""What a TLS client says before anything is encrypted."""

from __future__ import annotations

import ssl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.thirdparty.clienthello import MAX_BYTES, ClientHello, HelloReader, NotTls


def read_client_hello(data: bytes) -> ClientHello | None:
    return HelloReader().read(data)


def hello(name: str | None) -> bytes:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    inbound, outbound = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(inbound, outbound, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outbound.read()


def in_records(message: bytes, size: int) -> bytes:
    """A client hello's message cut into records of a size."""
    body = message[5:]
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"\x16\x03\x01" + len(part).to_bytes(2, "big") + part for part in parts)


def with_extension(message: bytes, kind: int, content: bytes) -> bytes:
    """The hello with one more extension at its end."""
    extension = kind.to_bytes(2, "big") + len(content).to_bytes(2, "big") + content
    body = bytearray(message[9:])
    at = 2 + 32
    at += 1 + body[at]
    at += 2 + int.from_bytes(body[at : at + 2], "big")
    at += 1 + body[at]
    total = int.from_bytes(body[at : at + 2], "big") + len(extension)
    body[at : at + 2] = total.to_bytes(2, "big")
    whole = bytes(body) + extension
    handshake = b"\x01" + len(whole).to_bytes(3, "big") + whole
    return b"\x16\x03\x01" + len(handshake).to_bytes(2, "big") + handshake


def names(*hosts: str) -> bytes:
    entries = b"".join(b"\0" + len(h).to_bytes(2, "big") + h.encode() for h in hosts)
    return len(entries).to_bytes(2, "big") + entries


def test_the_name_that_openssl_asks_for_is_read() -> None:
    assert read_client_hello(hello("api.test")) == ClientHello("api.test", False)
    assert read_client_hello(hello(None)) == ClientHello(None, False)


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_a_hello_in_many_records_is_one(size: int) -> None:
    assert read_client_hello(in_records(hello("api.test"), size)) == ClientHello("api.test", False)


def test_every_beginning_of_a_hello_needs_more() -> None:
    whole = hello("api.test")
    assert all(read_client_hello(whole[:end]) is None for end in range(len(whole)))


def test_an_encrypted_hello_is_said_to_be_one() -> None:
    found = read_client_hello(with_extension(hello("outer.test"), 0xFE0D, b"\0" * 20))
    assert found == ClientHello("outer.test", True)


def test_two_names_are_refused() -> None:
    with pytest.raises(NotTls):
        read_client_hello(with_extension(hello("a.test"), 0, names("b.test")))
    with pytest.raises(NotTls):
        read_client_hello(with_extension(hello(None), 0, names("a.test", "b.test")))


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"SSH-2.0-OpenSSH\r\n",
        b"\x16\x02\x01\x00\x05hello",
        b"\x17\x03\x03\x00\x05hello",
        b"\x16\x03\x01\x00\x00",
        b"\x16\x03\x01\x00\x04\x02\x00\x00\x00",
        b"\x16\x03\x01\x00\x04\x01\xff\xff\xff",
        b"\x16\x03\x01\x00\x06\x01\x00\x00\x02\x03\x03",
    ],
)
def test_what_is_no_client_hello_is_refused(data: bytes) -> None:
    with pytest.raises(NotTls):
        read_client_hello(data)


@given(st.binary(max_size=400))
def test_noise_never_is_a_hello_that_names_a_host(noise: bytes) -> None:
    for data in (noise, b"\x16\x03\x01" + noise, hello("a.test")[:11] + noise):
        try:
            found = read_client_hello(data)
        except NotTls:
            continue
        assert found is None or found.name is None or len(data) > len(found.name)


def test_a_hello_without_end_is_refused() -> None:
    record = b"\x16\x03\x01\x40\x00" + b"\x01\x00\xff\xff" + b"\0" * (2**14 - 4)
    rest = b"\x16\x03\x01\x00\x01\0" * (MAX_BYTES // 3)
    with pytest.raises(NotTls):
        read_client_hello(record + rest)
