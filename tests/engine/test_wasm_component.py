"""Building the component once and keeping it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from orchestrator.settings import load_engine_settings
from sandbox.engines.wasm.component import LoadedComponent, build_component, load_component
from sandbox.errors import ComponentMissing

CACHE = load_engine_settings().cache


def test_without_a_build_the_error_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ComponentMissing, match="toolwright setup"):
        load_component(tmp_path)
    with pytest.raises(ComponentMissing):
        load_component(tmp_path / "nowhere")


def test_what_is_in_the_cache_is_not_built_again(component: LoadedComponent) -> None:
    steps: list[str] = []
    assert build_component(CACHE, steps.append).digest == component.digest
    assert not steps


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
    with pytest.raises(ComponentMissing):
        load_component(tmp_path)
