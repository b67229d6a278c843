"""Ids that a task says by a name: looked up in a list of the same server, and never guessed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.doing.apis import (
    DOCUMENT,
    Api,
    Arguments,
    Operation,
    Parameter,
    Reply,
    Rows,
    Service,
    add_row,
    change_row,
    get_row,
    list_rows,
    run_api,
)
from orchestrator.app import App, open_app
from orchestrator.calls import Call
from orchestrator.forging.order import ForgeOrder
from orchestrator.settings import Settings, load_settings
from orchestrator.views.jobs import build_job_result
from registry.models import Job
from registry.search.encoder import is_installed
from tests.functional.test_task_questions import get_answer, get_question
from tests.granted import allow

STANDING = 12
FILM = {"film_id": "f-1", "title": "Metropolis", "year": 1927}
ID = Parameter("film_id", "Id of the film", required=True)
FILMS = [
    FILM,
    {"film_id": "f-2", "title": "Amélie", "year": 2001},
    {"film_id": "f-3", "title": "Nosferatu", "year": 1922},
    {"film_id": "f-4", "title": "Nosferatu", "year": 1979},
]
CINEMA = Api(
    "cinema",
    "Cinema",
    "Films.",
    (
        Operation("GET", "/films", "listFilms", "List films", list_rows("films"), answer=[FILM]),
        Operation(
            "GET",
            "/films/{film_id}",
            "getFilm",
            "Show a film",
            get_row("films", "film_id"),
            (ID,),
            answer=FILM,
        ),
        Operation(
            "POST",
            "/films/{film_id}/rent",
            "rentFilm",
            "Rent a film",
            change_row("films", key="film_id"),
            (ID,),
            answer=FILM,
        ),
        Operation(
            "POST",
            "/notes",
            "addNote",
            "Add a note",
            add_row("notes", "text"),
            body=(Parameter("text", "The note", required=True),),
            answer={"id": 1, "text": "x"},
        ),
    ),
    {"films": FILMS, "notes": []},
)

PAGE = 10
REELS = [{"reel_id": f"r-{n}", "title": f"Reel {chr(65 + n)}", "minutes": n} for n in range(26)]


def _list_reels(rows: Rows, given: Arguments) -> Reply:
    start = int(given.get("cursor") or 0)
    following = str(start + PAGE) if start + PAGE < len(rows["reels"]) else ""
    return 200, {"data": rows["reels"][start : start + PAGE], "next_cursor": following}


def _list_posters(rows: Rows, given: Arguments) -> Reply:
    return 200, [row for row in rows["posters"] if row["hall"] == given.get("hall")]


REEL_ID = Parameter("reel_id", "Id of the reel", required=True)
HALL = Parameter("hall", "The hall", required=True, choices=("red", "blue"))
POSTER_ID = Parameter("poster_id", "Id of the poster", required=True)
POSTER = {"poster_id": "p-1", "title": "Vertigo", "hall": "red"}
ARCHIVE = Api(
    "archive",
    "Archive",
    "Reels and posters.",
    (
        Operation(
            "GET",
            "/reels",
            "listReels",
            "List reels",
            _list_reels,
            (Parameter("cursor", "Where the page begins"),),
            answer={"data": REELS[:1], "next_cursor": "10"},
        ),
        Operation(
            "GET",
            "/reels/{reel_id}",
            "getReel",
            "Show a reel",
            get_row("reels", "reel_id"),
            (REEL_ID,),
            answer=REELS[0],
        ),
        Operation(
            "GET",
            "/posters",
            "listPosters",
            "List the posters of a hall",
            _list_posters,
            (HALL,),
            answer=[POSTER],
        ),
        Operation(
            "GET",
            "/posters/{poster_id}",
            "getPoster",
            "Show a poster",
            get_row("posters", "poster_id"),
            (POSTER_ID,),
            answer=POSTER,
        ),
    ),
    {
        "reels": REELS,
        "posters": [
            POSTER,
            {"poster_id": "p-2", "title": "Vertigo", "hall": "blue"},
            {"poster_id": "p-3", "title": "Psycho", "hall": "blue"},
        ],
    },
)

MEMBERS = [{"member_id": 11, "name": "Eva"}, {"member_id": 12, "name": "Tom Reed"}]
LENDING = Api(
    "lending",
    "Lending",
    "Films are lent to members.",
    (
        Operation(
            "GET",
            "/members",
            "listMembers",
            "List the members",
            list_rows("members"),
            answer=[MEMBERS[0]],
        ),
        Operation(
            "POST",
            "/loans",
            "lendFilm",
            "Lend a film to a member",
            add_row("loans", "film"),
            body=(
                Parameter("film", "Number of the film", "integer", required=True),
                Parameter("member_id", "Who gets it", "integer", required=True),
            ),
            answer={"id": 1, "film": 3, "member_id": 11},
        ),
    ),
    {"members": MEMBERS, "loans": []},
)


@pytest.fixture
def settings(tmp_path: Path, component: object) -> Settings:
    return replace(load_settings(home=tmp_path, engine="wasm"), semantic=True)


class Cinema:
    """A process with the server `cinema`."""

    def __init__(self, app: App, api: Service) -> None:
        self.app, self.api = app, api

    async def do(self, task: str, **request: Any) -> Job:
        self.api.requests.clear()
        job = self.app.jobs.create_job("do", {"task": task, **request})
        return await self.app.jobs.complete(job)

    async def answer(self, job: Job, **answer: Any) -> Job:
        self.api.requests.clear()
        named = {"question": job.result["question"]["id"], **answer}
        taken = self.app.answering.take_answer(job.id, named, "test")
        assert isinstance(taken, Job), taken
        return await self.app.jobs.complete(taken)

    @property
    def asked(self) -> list[str]:
        return [str(request) for request in self.api.requests]


def tell(
    settings: Settings,
    story: Callable[[Cinema], Awaitable[None]],
    *,
    experimental: bool = False,
    told_by: Api = CINEMA,
    listing: str = "list_films",
) -> None:
    async def told() -> None:
        with run_api(told_by) as api:
            async with open_app(settings, "do") as app:
                allow(settings, app.store, api.url)
                order = ForgeOrder(source=api.url + DOCUMENT, name=told_by.name)
                await app.forge.forge_server(order, lambda step: None)
                for _ in range(STANDING):
                    await app.dispatch.call_tool(Call(told_by.name, listing, {}))
                if experimental:
                    store, now = app.store.servers, time.time()
                    store.set_state(told_by.name, "experimental", now, "terminal", "not sure yet")
                await app.dispatch.ledger.wait_written()
                await story(Cinema(app, api))

    asyncio.run(told())


@pytest.mark.skipif(not is_installed(), reason="the extra `semantic` is not installed")
def test_a_read_by_name_is_two_reads_and_what_is_not_just_one_row_is_asked(
    settings: Settings,
) -> None:
    async def story(here: Cinema) -> None:
        shown = await here.do("show the film Metropolis")
        assert get_answer(shown) == FILM
        assert here.asked == ["GET /films", "GET /films/f-1"]
        finding, step = shown.result["steps"]
        assert (finding["tool"], finding["finds"]) == ("cinema.list_films", "s1")
        assert step["planned"] == {"film_id": {"$ref": finding["id"], "path": "$[0]['film_id']"}}
        (note, *_) = build_job_result(shown)["content"]
        assert "film_id is that of 'Metropolis' in cinema.list_films" in note["text"]

        assert get_answer(await here.do("show the film AMELIE"))["film_id"] == "f-2"

        two = await here.do("show the film Nosferatu")
        question = get_question(two)
        assert here.asked == ["GET /films"]
        assert [each["film_id"] for each in question["shown"]["choices"]] == ["f-3", "f-4"]
        assert "1922" in question["text"]
        assert "1979" in question["text"]
        assert get_answer(await here.answer(two, arguments={"film_id": "f-4"}))["year"] == 1979
        assert here.asked == ["GET /films/f-4"]

        none = get_question(await here.do("show the film Dracula"))
        assert none["kind"] == "arguments"
        assert none["text"].startswith("None that cinema.list_films gave is called “Dracula”")
        assert here.asked == ["GET /films"]

        # Small letters may be anything: the lookup is shown first.
        small = await here.do("show the film metropolis")
        assert get_question(small)["shown"]["tool"] == "cinema.list_films"
        assert here.asked == []
        assert get_answer(await here.answer(small, confirm=True)) == FILM
        assert here.asked == ["GET /films", "GET /films/f-1"]

    tell(settings, story)


@pytest.mark.skipif(not is_installed(), reason="the extra `semantic` is not installed")
def test_the_id_of_a_write_is_shown_before_the_write_waits_for_its_approval(
    settings: Settings,
) -> None:
    async def story(here: Cinema) -> None:
        rented = await here.do("rent the film Metropolis")
        question = get_question(rented)
        assert (question["kind"], question["shown"]["tool"]) == ("confirm", "cinema.rent_film")
        assert question["shown"]["arguments"] == {"film_id": "f-1"}
        assert "film_id is that of 'Metropolis'" in question["text"]
        assert here.asked == ["GET /films"]
        pending = await here.answer(rented, confirm=True)
        assert pending.result["state"] == "pending"
        assert pending.result["request"]["url"].endswith("/films/f-1/rent")
        assert "POST" not in " ".join(here.asked)

        # Whoever names the tool is shown the id of a write too, and of a read is not asked.
        named = await here.do("the film Metropolis", tool="cinema.rent_film")
        assert get_question(named)["shown"]["arguments"] == {"film_id": "f-1"}
        read = await here.do("the film Metropolis", tool="cinema.get_film")
        assert read.result["answer"]["structuredContent"]["body"] == FILM
        # A value that was given is what is meant.
        given = await here.do(
            "the film Metropolis", tool="cinema.get_film", arguments={"film_id": "f-2"}
        )
        assert here.asked == ["GET /films/f-2"]
        assert given.result["answer"]["structuredContent"]["body"]["title"] == "Amélie"

    tell(settings, story)


def test_of_an_experimental_server_nothing_is_looked_up_unasked(
    settings: Settings,
) -> None:
    async def story(here: Cinema) -> None:
        asked = await here.do("the film Metropolis", tool="cinema.get_film")
        question = get_question(asked)
        assert (question["kind"], question["shown"]["tool"]) == ("confirm", "cinema.list_films")
        assert "finds the film_id of 'Metropolis'" in question["text"]
        assert here.asked == []
        refused = await here.answer(asked, confirm=False)
        assert [*get_question(refused)["shown"]["missing"]] == ["film_id"]
        assert here.asked == []

    tell(settings, story, experimental=True)


@pytest.mark.skipif(not is_installed(), reason="the extra `semantic` is not installed")
def test_what_the_first_page_does_not_have_is_looked_for_on_three(settings: Settings) -> None:
    async def story(here: Cinema) -> None:
        shown = await here.do("show the reel Reel Y")
        pages = ["GET /reels", "GET /reels?cursor=10", "GET /reels?cursor=20"]
        assert here.asked == ["GET /reels", *pages]
        # There may be more pages than three, with another of that name.
        question = get_question(shown)
        assert question["shown"] == {
            **question["shown"],
            "tool": "archive.get_reel",
            "arguments": {"reel_id": "r-24"},
        }
        assert get_answer(await here.answer(shown, confirm=True))["minutes"] == 24
        assert here.asked == ["GET /reels/r-24"]

        none = get_question(await here.do("show the reel Reel Zzz"))
        assert none["kind"] == "arguments"
        assert here.asked == ["GET /reels", *pages]

    tell(settings, story, told_by=ARCHIVE, listing="list_reels")


@pytest.mark.skipif(not is_installed(), reason="the extra `semantic` is not installed")
def test_a_list_that_needs_what_the_task_says_is_read_with_it(settings: Settings) -> None:
    async def story(here: Cinema) -> None:
        shown = await here.do("show the poster Vertigo of the blue hall")
        assert here.asked == ["GET /posters?hall=blue", "GET /posters/p-2"]
        assert get_answer(shown)["poster_id"] == "p-2"

        elsewhere = get_question(await here.do("show the poster Psycho of the red hall"))
        assert here.asked == ["GET /posters?hall=red"]
        assert elsewhere["kind"] == "arguments"

    tell(settings, story, told_by=ARCHIVE, listing="list_reels")


def test_an_id_in_the_body_of_a_write_is_looked_up_and_shown_before_the_write_waits(
    settings: Settings,
) -> None:
    async def story(here: Cinema) -> None:
        lent = await here.do("lend film 3 to Eva", tool="lending.lend_film")
        question = get_question(lent)
        assert (question["kind"], question["shown"]["tool"]) == ("confirm", "lending.lend_film")
        assert question["shown"]["arguments"] == {"body": {"film": 3, "member_id": 11}}
        assert "body.member_id is that of 'Eva' in what lending.list_members" in question["text"]
        assert here.asked == ["GET /members"]
        pending = await here.answer(lent, confirm=True)
        assert pending.result["state"] == "pending"
        assert pending.result["request"]["body"] == '{"film":3,"member_id":11}'
        assert here.asked == []

        # A part of a name is no name: whose id it is has to be said.
        part = get_question(await here.do("lend film 3 to Tom", tool="lending.lend_film"))
        assert part["kind"] == "arguments"
        assert "body.member_id 12 (Tom Reed)" in part["text"]

        # A title and a family name are somebody's only where whoever asked says so.
        titled = get_question(await here.do("lend film 3 to Mr Reed", tool="lending.lend_film"))
        assert titled["shown"]["arguments"] == {"body": {"film": 3, "member_id": 12}}
        assert "'Mr Reed' is read as 'Tom Reed', the only such name" in titled["text"]
        other = get_question(await here.do("lend film 3 to Mr Tom", tool="lending.lend_film"))
        assert other["kind"] == "arguments"

        unsaid = get_question(await here.do("lend a film", tool="lending.lend_film"))
        assert unsaid["shown"]["listed_by"] == {"body.member_id": "lending.list_members"}

    tell(settings, story, told_by=LENDING, listing="list_members")


@pytest.mark.skipif(not is_installed(), reason="the extra `semantic` is not installed")
def test_who_says_no_to_a_lookup_that_words_alone_proposed_is_asked_for_the_tool(
    settings: Settings,
) -> None:
    async def story(here: Cinema) -> None:
        proposed = await here.do("show the film metropolis")
        assert get_question(proposed)["shown"]["tool"] == "cinema.list_films"
        refused = await here.answer(proposed, confirm=False)
        question = get_question(refused)
        assert question["kind"] == "choose"
        assert {each["tool"] for each in question["shown"]["candidates"]} >= {
            "cinema.get_film",
            "cinema.list_films",
        }
        again = await here.answer(refused, tool="cinema.get_film")
        assert [*get_question(again)["shown"]["missing"]] == ["film_id"]
        assert here.asked == []
        ended = await here.answer(again, arguments={"film_id": "f-1"})
        assert get_answer(ended) == FILM

    tell(settings, story)


JOB = {"id": 7, "title": "Brakes", "customer_id": 2}
CUSTOMER = {"customer_id": 1, "name": "Ann Lee", "email": "ann@x.example"}
ROWS = [{"id": 1}]
DAY = Parameter("date", "The day", required=True)


def refuse(rows: Rows, given: Arguments) -> Reply:
    """As an API does that needs the day that its description requires."""
    return (200, rows["visits"]) if given.get("date") else (400, {"error": "date is missing"})


GARAGE = Api(
    "garage",
    "Garage",
    "Jobs and customers.",
    (
        Operation(
            "GET",
            "/jobs",
            "listJobs",
            "List jobs",
            list_rows("jobs", "customer_id"),
            (Parameter("customer_id", "Of this customer", "integer"),),
            answer=[JOB],
        ),
        Operation(
            "GET",
            "/customers",
            "listCustomers",
            "List customers",
            list_rows("customers"),
            answer=[CUSTOMER],
        ),
        Operation(
            "GET",
            "/customers/{customer_id}",
            "getCustomer",
            "Show a customer",
            get_row("customers", "customer_id"),
            (Parameter("customer_id", "Its number", "integer", required=True),),
            answer=CUSTOMER,
        ),
        Operation(
            "POST",
            "/customers",
            "addCustomer",
            "Add a customer",
            add_row("customers", "name", "email"),
            body=(Parameter("name", "Name", required=True), Parameter("email", "Email")),
            answer=CUSTOMER,
        ),
        Operation(
            "GET",
            "/parts",
            "listParts",
            "List parts",
            list_rows("parts"),
            (DAY,),
            answer=[{"id": 1}],
        ),
        Operation(
            "GET", "/visits", "listVisits", "List visits", refuse, (DAY,), answer=[{"id": 1}]
        ),
        Operation(
            "GET",
            "/ladders/{id}",
            "getLadder",
            "Show a ladder",
            get_row("ladders"),
            (Parameter("id", "Number of the ladder", "integer", required=True),),
            answer={"id": 1, "name": "Jack"},
        ),
        Operation(
            "POST",
            "/ladders/{id}/return",
            "returnLadder",
            "Bring a ladder back",
            change_row("ladders"),
            (
                Parameter("id", "Number of the ladder", "integer", required=True),
                Parameter("fee", "What its delay costs", "number"),
            ),
            answer={"id": 1, "name": "Jack"},
        ),
    ),
    {
        "jobs": [JOB, {**JOB, "id": 8, "customer_id": 1}],
        "customers": [CUSTOMER, {"customer_id": 2, "name": "Omar Diaz", "email": "omar@x.example"}],
        "parts": [{"id": 1}],
        "visits": [{"id": 1, "date": "2030-01-02"}],
        "ladders": [{"id": 1, "name": "Jack"}],
    },
)


def tell_garage(settings: Settings, story: Callable[[Cinema], Awaitable[None]]) -> None:
    tell(settings, story, told_by=GARAGE, listing="list_jobs")


@pytest.mark.skipif(not is_installed(), reason="the extra `semantic` is not installed")
def test_a_list_is_narrowed_to_whom_the_task_names(settings: Settings) -> None:
    async def story(here: Cinema) -> None:
        shown = await here.do("show me the jobs of Ann Lee")
        assert [each["id"] for each in get_answer(shown)] == [8]
        assert here.asked == ["GET /customers", "GET /jobs?customer_id=1"]

        # Who is no customer, and what is no person's, narrows nothing.
        nobody = get_question(await here.do("show me the jobs of Zed Null"))
        assert nobody["text"].startswith(
            "None that garage.list_customers gave is called “Zed Null”"
        )
        assert here.asked == ["GET /customers"]
        await here.do("show me the jobs in Berlin")
        assert here.asked == []

        email = get_question(await here.do("what's the email of Ann Lee"))
        assert email["shown"]["tool"] == "garage.list_customers"
        assert "It finds the customer_id of 'Ann Lee'" in email["text"]
        assert here.asked == []

    tell_garage(settings, story)


@pytest.mark.skipif(not is_installed(), reason="the extra `semantic` is not installed")
def test_a_filter_that_a_description_requires_is_asked_for_once_the_api_wants_it(
    settings: Settings,
) -> None:
    async def story(here: Cinema) -> None:
        assert get_answer(await here.do("list the parts")) == [{"id": 1}]
        assert here.asked == ["GET /parts"]

        refused = await here.do("list the visits")
        assert here.asked == ["GET /visits"]
        assert [*get_question(refused)["shown"]["missing"]] == ["date"]
        told = await here.answer(refused, arguments={"date": "2030-01-02"})
        assert [each["id"] for each in get_answer(told)] == [1]
        assert here.asked == ["GET /visits?date=2030-01-02"]

    tell_garage(settings, story)


@pytest.mark.skipif(not is_installed(), reason="the extra `semantic` is not installed")
def test_a_verb_that_a_write_has_in_its_name_has_nothing_read(settings: Settings) -> None:
    async def story(here: Cinema) -> None:
        question = get_question(await here.do("return ladder 1"))
        assert question["kind"] == "choose"
        first = question["shown"]["candidates"][0]
        assert first["tool"] == "garage.return_ladder"
        assert {*first["inputSchema"]["properties"]} == {"id", "fee"}
        assert here.asked == []
        await here.do("show ladder 1")
        assert here.asked == ["GET /ladders/1"]

    tell_garage(settings, story)


@pytest.mark.skipif(not is_installed(), reason="the extra `semantic` is not installed")
def test_a_thing_that_is_searched_for_is_not_read_by_a_number_in_its_name(
    settings: Settings,
) -> None:
    async def story(here: Cinema) -> None:
        question = get_question(await here.do("search for Globe 1"))
        offered = [each["tool"] for each in question["shown"]["candidates"]]
        assert question["kind"] == "choose"
        assert offered[0] == "shelf.search_catalogue"
        assert here.asked == []
        await here.do("show globe 1")
        assert here.asked == ["GET /globes/1"]

    tell(settings, story, told_by=SHELF, listing="list_globes")


@pytest.mark.skipif(not is_installed(), reason="the extra `semantic` is not installed")
def test_a_thing_that_is_made_something_is_changed_and_none_is_made(settings: Settings) -> None:
    async def story(here: Cinema) -> None:
        question = get_question(await here.do("make globe 1 broken"))
        assert (question["kind"], question["shown"]["tool"]) == ("confirm", "shelf.update_globe")
        assert question["shown"]["arguments"] == {"id": 1, "body": {"state": "broken"}}
        assert here.asked == []

    tell(settings, story, told_by=SHELF, listing="list_globes")


GLOBE = {"id": 1, "title": "Emma", "state": "lent"}
SHELF = Api(
    "shelf",
    "Shelf",
    "Globes.",
    (
        Operation(
            "GET", "/globes", "listGlobes", "List globes", list_rows("globes"), answer=[GLOBE]
        ),
        Operation(
            "GET",
            "/globes/{id}",
            "getGlobe",
            "Show a globe",
            get_row("globes"),
            (Parameter("id", "Number of the globe", "integer", required=True),),
            answer=GLOBE,
        ),
        Operation(
            "POST",
            "/globes",
            "createGlobe",
            "Create a globe",
            add_row("globes", "title"),
            body=(Parameter("title", "Its title", required=True),),
            answer=GLOBE,
        ),
        Operation(
            "PATCH",
            "/globes/{id}",
            "updateGlobe",
            "Update a globe",
            change_row("globes"),
            (Parameter("id", "Number of the globe", "integer", required=True),),
            body=(Parameter("state", "Where it is", choices=("here", "lent", "broken")),),
            answer=GLOBE,
        ),
        Operation(
            "GET",
            "/search",
            "searchCatalogue",
            "Search the catalogue",
            list_rows("globes"),
            (Parameter("q", "Words of a title", required=True),),
            answer=[GLOBE],
        ),
    ),
    {"globes": [GLOBE]},
)
