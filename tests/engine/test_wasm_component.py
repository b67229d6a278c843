"""Building the component once and keeping it."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import pytest
from wasmtime.component import Component

from orchestrator.settings import load_engine_settings
from sandbox.engines.wasm.building import (
    SHIPPED,
    SHIPPED_DIGEST,
    ShippedComponent,
    find_shipped,
)
from sandbox.engines.wasm.component import (
    MAX_COMPONENTS,
    LoadedComponent,
    build_component,
    load_component,
    remove_older_components,
)
from sandbox.errors import ComponentBuildFailed, ComponentMissing

CACHE = load_engine_settings().cache


def test_without_a_build_the_error_says_what_to_do(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    with pytest.raises(ComponentMissing, match="toolwright setup"):
        load_component(tmp_path)
    with pytest.raises(ComponentMissing):
        load_component(tmp_path / "nowhere")


def test_what_is_in_the_cache_is_not_built_again(component: LoadedComponent) -> None:
    steps: list[str] = []
    assert build_component(CACHE, steps.append).digest == component.digest
    assert not steps


def test_the_newest_of_a_few_versions_stay_beside_this_one(tmp_path: Path) -> None:
    others = [tmp_path / f"other{number}-{number}.cwasm" for number in range(MAX_COMPONENTS + 1)]
    earlier, kept = tmp_path / "this-1.cwasm", tmp_path / "this-2.cwasm"
    for age, file in enumerate((earlier, *others, kept)):
        file.touch()
        os.utime(file, (age, age))
    remove_older_components(tmp_path, kept)
    assert set(tmp_path.iterdir()) == {kept, *others[2:]}


def copied(component: LoadedComponent, directory: Path) -> Path:
    directory.chmod(0o700)
    return Path(shutil.copy(CACHE / f"{component.digest}.cwasm", directory))


def test_a_file_that_others_can_write_is_not_run(
    component: LoadedComponent, tmp_path: Path
) -> None:
    copied(component, tmp_path).chmod(0o666)
    with pytest.raises(ComponentMissing, match="others"):
        load_component(tmp_path)


def test_a_directory_that_others_can_write_to_is_not_trusted(
    component: LoadedComponent, tmp_path: Path
) -> None:
    copied(component, tmp_path)
    tmp_path.chmod(0o777)
    with pytest.raises(ComponentMissing, match="others"):
        load_component(tmp_path)


def test_a_link_is_not_followed(component: LoadedComponent, tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    name = f"{component.digest}.cwasm"
    (tmp_path / name).symlink_to(CACHE / name)
    with pytest.raises(ComponentMissing, match=r"others|link"):
        load_component(tmp_path)


def test_a_file_cut_short_is_not_run(component: LoadedComponent, tmp_path: Path) -> None:
    path = copied(component, tmp_path)
    path.write_bytes(path.read_bytes()[:100_000])
    with pytest.raises(ComponentMissing, match="not hold what was compiled"):
        load_component(tmp_path)


def changed(path: Path) -> bytes:
    """Change a bit in the middle of a file, where wasmtime checks nothing; its content then."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    return bytes(content)


def test_machine_code_that_was_changed_is_not_run(
    component: LoadedComponent, tmp_path: Path
) -> None:
    changed(copied(component, tmp_path))
    with pytest.raises(ComponentMissing, match="not hold what was compiled"):
        load_component(tmp_path)


def test_other_machine_code_under_the_name_is_not_run(
    component: LoadedComponent, tmp_path: Path
) -> None:
    tmp_path.chmod(0o700)
    other = Component(component.engine, b"(component)").serialize()
    path = tmp_path / f"{component.digest}.cwasm"
    path.write_bytes(other)
    path.chmod(0o600)
    with pytest.raises(ComponentMissing, match="not hold what was compiled"):
        load_component(tmp_path)


def test_a_second_name_of_a_file_is_not_run(component: LoadedComponent, tmp_path: Path) -> None:
    os.link(copied(component, tmp_path), tmp_path / "kept-elsewhere")
    with pytest.raises(ComponentMissing, match="others"):
        load_component(tmp_path)


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604])
def test_a_file_that_others_can_read_was_not_written_here(
    component: LoadedComponent, tmp_path: Path, mode: int
) -> None:
    copied(component, tmp_path).chmod(mode)
    with pytest.raises(ComponentMissing, match="others"):
        load_component(tmp_path)


def test_a_cache_that_is_a_link_is_neither_read_nor_written(
    component: LoadedComponent, tmp_path: Path
) -> None:
    place = tmp_path / "elsewhere"
    place.mkdir(mode=0o700)
    copied(component, place)
    (tmp_path / "cache").symlink_to(place)
    with pytest.raises(ComponentMissing):
        load_component(tmp_path / "cache")
    with pytest.raises(ComponentBuildFailed):
        build_component(tmp_path / "cache", print)


def test_what_lay_where_others_could_write_is_compiled_anew(
    component: LoadedComponent, tmp_path: Path
) -> None:
    content = changed(copied(component, tmp_path))
    tmp_path.chmod(0o777)
    steps: list[str] = []
    build_component(tmp_path, steps.append)
    assert len(steps) == 2
    assert tmp_path.stat().st_mode & 0o777 == 0o700
    (kept,) = tmp_path.glob("*.cwasm")
    assert kept.read_bytes() != content
    assert kept.stat().st_mode & 0o777 == 0o600


def test_what_is_whole_and_private_is_mapped(component: LoadedComponent, tmp_path: Path) -> None:
    copied(component, tmp_path)
    assert load_component(tmp_path).digest == component.digest


def shipped(directory: Path, content: bytes) -> ShippedComponent:
    """What a wheel brings, found in a directory."""
    (directory / SHIPPED).write_bytes(content)
    digest = hashlib.sha256(b"(component)").hexdigest()
    (directory / SHIPPED_DIGEST).write_text(f"{digest}\n")
    found = find_shipped(directory)
    assert found is not None
    return found


def test_a_checkout_brings_no_component_and_a_wheel_does(tmp_path: Path) -> None:
    assert find_shipped() is None
    assert find_shipped(tmp_path) is None
    assert shipped(tmp_path, b"(component)").read() == b"(component)"


def test_a_component_that_is_not_what_was_built_is_not_compiled(tmp_path: Path) -> None:
    with pytest.raises(ComponentBuildFailed, match="Install Toolwright again"):
        shipped(tmp_path, b"(component )").read()
