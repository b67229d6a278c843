"""Endpoints by purpose: whom a role asks, with which key, and who is asked where one is away."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from forge.authors.interface import ModelReply, ModelRequest
from forge.errors import AuthorFailed
from orchestrator.forging.authors.authors import Authors
from orchestrator.forging.authors.choice import AuthorChoice
from orchestrator.gateway.brokers import SOURCES
from orchestrator.settings import Settings, load_model_settings, load_settings
from registry.models import Job
from registry.secrets.vault import FileVault, Secret
from registry.secrets.vault_key import KeyFile
from registry.store import Store
from sandbox.killswitch import KillSwitch
from tests.granted import allow, consents
from tests.world.model import Model, Said, model, said

JOB = Job("j1", "forge", {}, 0.0, 0.0)
BUSY = Said(status=503, headers=(("Retry-After-Ms", "1"),), body=b"busy")
ROLES = ("author", "reader", "extractor")


@dataclass(frozen=True)
class Home:
    settings: Settings
    store: Store

    @property
    def vault(self) -> FileVault:
        home = self.settings.home
        return FileVault(home / "vault.json", key=KeyFile(home / "vault.key"))

    def ask(self, given: Mapping[str, str], role: str = "author", job: str = JOB.id) -> ModelReply:
        """The answer to a question that this role asks for a job."""
        asked = ModelRequest("code", f"As {role}.", {"type": "object"}, 100)
        settings = replace(load_model_settings(given), seconds=60.0)
        granted = consents(self.settings, self.store)

        async def write() -> ModelReply:
            switch, of = KillSwitch(), replace(JOB, id=job)
            authors = Authors(settings, self.store, self.vault, granted, switch, time.time)
            try:
                if role == "reader":
                    author = await authors.open_reader("", of, "s", lambda: None)
                    assert author is not None
                else:
                    chosen, place = AuthorChoice("openai", ""), _as_any(role)
                    author = await authors.open_author(chosen, of, "s", lambda: None, place)
                return await author.write(asked)
            finally:
                await authors.close()

        return asyncio.run(write())


def _as_any(value: Any) -> Any:
    return value


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    settings = load_settings(home=tmp_path)
    with Store.open(settings.database_url, "test") as store:
        yield Home(settings, store)


def name_endpoint(prefix: str, here: Model, **more: str) -> dict[str, str]:
    given = {"BASE_URL": here.url, "MODEL": "m", "API_KEY": f"key-of-{prefix}", **more}
    return {f"{prefix}_{name}": value for name, value in given.items()}


def list_keys(here: Model) -> list[str]:
    return [headers["authorization"].removeprefix("Bearer ") for headers in here.headers]


def test_each_role_asks_its_own_endpoint_with_its_own_key(home: Home) -> None:
    with model(lambda _: said({})) as main, model(lambda _: said({})) as own:
        given = {
            **name_endpoint("OPENAI", main, MODEL="large"),
            **name_endpoint("TOOLWRIGHT_EXTRACTOR", own, MODEL="cheap"),
            "TOOLWRIGHT_READER_MODEL": "other",
        }
        for role in ROLES:
            home.ask(given, role)
    assert [request["model"] for request in main.asked] == ["large", "other"]
    assert [request["model"] for request in own.asked] == ["cheap"]
    assert list_keys(main) == ["key-of-OPENAI", "key-of-OPENAI"]
    assert list_keys(own) == ["key-of-TOOLWRIGHT_EXTRACTOR"]


def test_another_endpoint_never_gets_the_main_ones_key(home: Home) -> None:
    home.vault.put(SOURCES, "OPENAI_API_KEY", Secret("sk-main-canary"))
    with model(lambda _: said({})) as main, model(lambda _: said({})) as own:
        given = {
            **name_endpoint("OPENAI", main),
            "TOOLWRIGHT_READER_BASE_URL": own.url,
        }
        home.ask(given, "reader")
    assert list_keys(own) == ["none"]


def test_the_vaults_key_goes_to_an_endpoint_once_a_person_allowed_its_host(home: Home) -> None:
    home.vault.put(SOURCES, "TOOLWRIGHT_READER_API_KEY", Secret("sk-reader-canary"))
    with model(lambda _: said({})) as main, model(lambda _: said({})) as own:
        given = {
            **name_endpoint("OPENAI", main),
            **name_endpoint("TOOLWRIGHT_READER", own, API_KEY=""),
        }
        home.ask(given, "reader")
        assert (len(main.asked), own.asked) == (1, [])
        allow(home.settings, home.store, own.url)
        home.ask(given, "reader", "another job")
    assert (len(main.asked), list_keys(own)) == (1, ["sk-reader-canary"])


@pytest.mark.parametrize("role", ROLES)
def test_another_endpoint_is_asked_where_one_does_not_answer(home: Home, role: str) -> None:
    with model(lambda _: BUSY) as main, model(lambda _: said({"code": "x"})) as spare:
        given = {**name_endpoint("OPENAI", main), **name_endpoint("TOOLWRIGHT_FALLBACK", spare)}
        assert home.ask(given, role).content == {"code": "x"}
    assert (bool(main.asked), len(spare.asked)) == (True, 1)
    spent = home.store.model_usage.sum_for_job(JOB.id)
    assert spent.calls == 2


@pytest.mark.parametrize(
    "answer", [Said("", message={"refusal": "I will not"}), Said("x", finish="length"), Said("no")]
)
def test_a_refusal_or_a_bad_answer_is_told_and_asked_of_nobody_else(
    home: Home, answer: Said
) -> None:
    with model(lambda _: answer) as main, model(lambda _: said({"code": "x"})) as spare:
        given = {**name_endpoint("OPENAI", main), **name_endpoint("TOOLWRIGHT_FALLBACK", spare)}
        with pytest.raises(AuthorFailed):
            home.ask(given)
    assert spare.asked == []


def test_where_none_answers_the_reasons_of_all_are_told(home: Home) -> None:
    with model(lambda _: BUSY) as main, model(lambda _: BUSY) as spare:
        given = {**name_endpoint("OPENAI", main), **name_endpoint("TOOLWRIGHT_FALLBACK", spare)}
        with pytest.raises(AuthorFailed) as failed:
            home.ask(given)
    assert failed.value.kind == "unavailable"
    assert failed.value.reason.count("status 503") == 2
