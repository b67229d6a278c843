"""The inside of a fetching container with Python: runs pip, or downloads one file.

Runs with a loopback that leads to the package registries alone (images/exit), under a profile that
lets no process start another: neither a build backend nor git. Reads a job from stdin: a length (4
bytes, network order), JSON, and the files that it lists. Writes to stdout a length and the status
as JSON; then for each regular file of `/work/tree` a length, a JSON header and the content; then a
length of zero.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import platform
import runpy
import shutil
import ssl
import stat
import struct
import sys
import traceback
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

WORK, PIP = "/work", "/opt/pip"
INPUT, TREE, LOG = f"{WORK}/in", f"{WORK}/tree", f"{WORK}/log"
CERTIFICATES = f"{INPUT}/ca.pem"
REPORT = f"{WORK}/report.json"
MAX_LOG = 16_000
CHUNK = 1 << 20
TAGS = ("manylinux2014", "manylinux_2_17", "manylinux_2_28", "manylinux_2_34", "linux")

Refusals = list[str]


def read_job() -> dict[str, Any]:
    (length,) = struct.unpack("!I", sys.stdin.buffer.read(4))
    job: dict[str, Any] = json.loads(sys.stdin.buffer.read(length))
    for directory in (INPUT, TREE, os.environ["HOME"], os.environ["TMPDIR"]):
        os.makedirs(directory, exist_ok=True)
    for name, size in job["files"]:
        with open(f"{INPUT}/{name}", "wb") as file:
            file.write(sys.stdin.buffer.read(size))
    return job


def choose_platform_flags(python: list[str] | None) -> list[str]:
    """pip's flags for another interpreter or machine than this one; none for the same."""
    ours = [f"{sys.version_info.major}.{sys.version_info.minor}", platform.machine()]
    if python is None or python == ours:
        return []
    flags = ["--python-version", python[0], "--implementation", "cp"]
    for tag in TAGS:
        flags += ["--platform", f"{tag}_{python[1]}"]
    return flags


def refuse_urls(refused: Refusals) -> None:
    """Have pip refuse requirements that name a URL when it reads them, before it asks for them.

    An index's files are found by name and version. Where this pip is made otherwise, such a
    requirement is refused by its report, and nothing of it can have run.
    """
    try:
        constructors: Any = importlib.import_module("pip._internal.req.constructors")
        errors: Any = importlib.import_module("pip._internal.exceptions")
        real = constructors.install_req_from_req_string
    except (ImportError, AttributeError):
        return

    def read(text: str, comes_from: Any = None, *rest: Any, **more: Any) -> Any:
        made = real(text, comes_from, *rest, **more)
        if made.req is not None and getattr(made.req, "url", None):
            refused.append(f"{getattr(comes_from, 'name', '')} wants {text}")
            raise errors.InstallationError(f"{refused[-1]}: it is not in the index")
        return made

    constructors.install_req_from_req_string = read


def run_pip(job: dict[str, Any], refused: Refusals) -> int:
    if importlib.util.find_spec("pip") is None:
        print("pip is not installed. Install it (python3 -m ensurepip) and try again.")
        return 1
    refuse_urls(refused)
    flags = ["--target", TREE, "--only-binary", ":all:", "--no-compile", "--quiet", "--no-input"]
    flags += ["--disable-pip-version-check", "--no-cache-dir", "--report", REPORT]
    flags += ["--timeout", "60"]
    if os.path.exists(CERTIFICATES):
        flags += ["--cert", CERTIFICATES]
    wanted = choose_platform_flags(job.get("python"))
    sys.argv = ["pip", "install", *flags, *wanted, *job["arguments"]]
    try:
        runpy.run_module("pip", run_name="__main__", alter_sys=True)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def download(job: dict[str, Any], refused: Refusals) -> int:
    trusted = CERTIFICATES
    if not os.path.exists(trusted):
        trusted = importlib.import_module("pip._vendor.certifi").where()
    context = ssl.create_default_context(cafile=trusted)
    # The host made the address, and no file of a person is in here.
    answer = urllib.request.urlopen(job["url"], timeout=60, context=context)  # nosec B310
    with answer, open(f"{TREE}/file", "wb") as file:
        shutil.copyfileobj(answer, file, CHUNK)
    return 0


def attempt(work: Callable[[dict[str, Any], Refusals], int], job: dict[str, Any]) -> dict[str, Any]:
    refused: Refusals = []
    try:
        code = work(job, refused)
    except Exception:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    with open(LOG, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - MAX_LOG))
        output = file.read().decode(errors="replace")
    report = ""
    if os.path.exists(REPORT):
        with open(REPORT, encoding="utf-8") as text:
            report = text.read()
    return {"code": code, "output": output, "refused": refused[:20], "report": report}


def list_files(directory: str) -> Iterator[tuple[str, os.stat_result]]:
    for folder, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(folder, name)
            status = os.lstat(path)
            if stat.S_ISREG(status.st_mode):
                yield path, status


def send(out: int, status: dict[str, Any]) -> None:
    with os.fdopen(out, "wb", buffering=CHUNK) as stream:
        send_header(stream, status)
        if status["code"] == 0:
            for path, about in list_files(TREE):
                header = {"path": os.path.relpath(path, TREE), "size": about.st_size}
                send_header(stream, {**header, "executable": bool(about.st_mode & 0o100)})
                with open(path, "rb") as file:
                    shutil.copyfileobj(file, stream, CHUNK)
        stream.write(bytes(4))


def send_header(stream: Any, header: dict[str, Any]) -> None:
    data = json.dumps(header).encode()
    stream.write(struct.pack("!I", len(data)) + data)


def main() -> None:
    job = read_job()
    sys.path.append(PIP)
    out = os.dup(1)
    log = os.open(LOG, os.O_WRONLY | os.O_CREAT, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    send(out, attempt(download if "url" in job else run_pip, job))


main()
