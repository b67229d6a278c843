"""The node that fills in a step's arguments: given, bound to earlier results, read or asked for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from forge.errors import AuthorFailed
from orchestrator.errors import BudgetSpent
from orchestrator.tasks.arguments import extract_arguments
from orchestrator.tasks.model import Plan, Question, Reading, Step
from orchestrator.tasks.planning.binding import bind_steps
from orchestrator.tasks.planning.lookup import Found, build_reference, find_noun
from orchestrator.tasks.results import build_missing_arguments
from orchestrator.tasks.routing.naming import find_answer_schema
from orchestrator.tasks.run import questions
from orchestrator.tasks.run.context import RunContext
from orchestrator.tasks.run.flow import holds_reference, merge_arguments
from orchestrator.tasks.run.lookups import (
    NamedLookup,
    count_more,
    describe_match,
    find_done_list,
    find_lists,
    find_named_lookup,
    insert_lookup,
    list_choices,
    list_found,
    may_look_up,
    read_by_name,
)
from orchestrator.tasks.run.state import RunState, StepState, change_step, get_server, get_step
from orchestrator.tasks.run.taking import Recalled, encode_servers, recall_arguments
from orchestrator.tasks.run.task_words import list_doubts, plain_words, read_words
from orchestrator.tasks.run.thinking import CLIENT, RULES
from sandbox.bundle.model import ToolDefinition
from sandbox.schemas.coercion import nest_values
from sandbox.schemas.validator import get_checker

EARLIER = "earlier"
"""The member of a run's request that has, by tool, the arguments of the run that it does again."""


@dataclass(frozen=True)
class Filled:
    """What is known of a step's arguments without asking anybody. `known` are those given or bound
    to results, `reading` what the rules read beside them.
    """

    known: Mapping[str, Any]
    reading: Reading
    missing: tuple[str, ...]

    @property
    def arguments(self) -> dict[str, Any]:
        return {**self.reading.arguments, **self.known}

    @property
    def is_complete(self) -> bool:
        """Whether the tool can be called with them, once references are resolved."""
        carries = holds_reference(self.known)
        return not self.missing and (carries or not self.reading.problem)


@dataclass(frozen=True)
class Filling:
    """The node of one run."""

    context: RunContext

    async def arguments(self, state: RunState) -> RunState:
        """The arguments of the step's tool: those given, those of earlier results, the task's
        words, the endpoint's reading, else what is missing is asked by name.
        """
        step = get_step(state)
        self.context.tell("arguments", 0.3, f"reading the arguments of {step['tool']}")
        tool = self.context.get_tool(step["tool"])
        self.context.parts.prepare(get_server(step["tool"]), tool.name)
        known = step.get("arguments") or {}
        given = step.get("choice") == "given"
        if step.get("finds"):
            return {}
        if step.get("repeats"):
            return self._keep(state, step, known, dict.fromkeys(known, "memory"))
        if given and (known or step["task"].strip() == step["tool"]):
            return self._keep(state, step, known, dict.fromkeys(known, "given"))
        if known and step.get("read_by") and _fits(tool, known):
            origins = {n: "step" if holds_reference(v) else "model" for n, v in known.items()}
            return self._keep(state, step, known, origins)
        filled = await self._fill(state, step, tool)
        recalled = await asyncio.to_thread(self._recall, state, step, tool, filled)
        if recalled:
            return self._keep_recalled(state, step, filled, recalled)
        looked_up = await self._look_up(state, step, tool, filled)
        if looked_up is not None:
            return looked_up
        # Whoever names the tool and no arguments wants it called, whatever else the words say.
        doubts = () if given else (*list_doubts(filled.reading), *_doubt_unbound(step, filled))
        if not filled.is_complete or doubts:
            asked = await self._ask_endpoint(step, tool)
            if asked is not None:
                return {"steps": change_step(state, step["id"], **asked)}
        if not filled.is_complete:
            return await self._ask(state, step, tool, filled)
        carried = {name: "step" for name, value in filled.known.items() if holds_reference(value)}
        return {
            "steps": change_step(
                state,
                step["id"],
                arguments=filled.arguments,
                origins={**filled.reading.origins, **carried},
                evidence=dict(filled.reading.evidence),
                doubts=list(doubts),
                read_by=step.get("read_by") or (RULES if filled.arguments or not given else ""),
                spared=not {*tool.input_schema.get("required", ())} <= filled.arguments.keys(),
            )
        }

    def _keep(
        self, state: RunState, step: StepState, known: Mapping[str, Any], origins: Mapping[str, str]
    ) -> RunState:
        changed = change_step(state, step["id"], arguments=dict(known), origins=dict(origins))
        return {"steps": changed}

    async def _fill(self, state: RunState, step: StepState, tool: ToolDefinition) -> Filled:
        """What the results of earlier steps and the words of the task come to."""
        before = [state["steps"][name] for name in step["after"]]
        earlier = [
            (each, self.context.get_tool(each["tool"]))
            for each in before
            if each.get("end") == "done" and not each.get("finds")
        ]
        known = await asyncio.to_thread(bind_results, step, tool, earlier)
        plain = {name: value for name, value in known.items() if not holds_reference(value)}
        entry = self.context.parts.roster.get_server(get_server(step["tool"])).entry
        about = f"{entry.name} {entry.title}"
        spares = not step.get("insists")
        reading = await asyncio.to_thread(
            read_words, step["task"], tool, plain, about, spares=spares
        )
        missing = tuple(n for n in reading.missing if n.partition(".")[0] not in known)
        return Filled(known, reading, missing)

    async def _look_up(
        self, state: RunState, step: StepState, tool: ToolDefinition, filled: Filled
    ) -> RunState | None:
        """The step with the id of what its words name, or the run with the read that finds it; None
        where nothing is to be looked up.
        """
        if holds_reference(filled.known):
            return None
        parts, server = self.context.parts, get_server(step["tool"])
        entry = parts.roster.get_server(server).entry
        words = plain_words(step["task"], tool, f"{entry.name} {entry.title}")
        named = find_named_lookup(parts, words, server, tool, filled.reading)
        if named is None:
            return None
        finding = find_done_list(state, step, named)
        if not finding:
            is_asked = not await asyncio.to_thread(may_look_up, parts, step, named)
            if step.get("found_by") == "" or (is_asked and self.context.quiet):
                # Somebody said no to it, or nobody is there to be asked. A name is no id: what is
                # not looked up is asked for.
                reading = read_by_name(filled.reading, named)
                missing = (named.lookup.parameter,)
                return await self._ask(
                    state, step, tool, replace(filled, reading=reading, missing=missing)
                )
            return insert_lookup(state, step, named, is_asked=is_asked)
        found = list_found(state, named, finding)
        more = count_more(state, step, named, found)
        if more:
            return insert_lookup(state, step, named, is_asked=False, most=more)
        filled = replace(filled, reading=read_by_name(filled.reading, named), missing=())
        if not found.matches and found.is_whole and len(found.near) == 1:
            found = replace(found, matches=found.near)
        if len(found.matches) != 1:
            return await self._ask_which(state, step, tool, filled, named, found)
        return self._keep_found(state, step, tool, filled, named, found, finding)

    def _keep_found(
        self,
        state: RunState,
        step: StepState,
        tool: ToolDefinition,
        filled: Filled,
        named: NamedLookup,
        found: Found,
        finding: str,
    ) -> RunState:
        """The step with a reference to the one row that is called so."""
        name, (row,) = named.lookup.parameter, found.matches
        certain = tuple(each for each in filled.reading.doubtful if each != name)
        shown = step.get("choice") == "given"
        doubts = () if shown else list_doubts(replace(filled.reading, doubtful=certain))
        writes = tool.access != "read"
        return {
            "steps": change_step(
                state,
                step["id"],
                arguments=merge_arguments(
                    filled.arguments,
                    nest_values({name: build_reference(named.lookup, finding, row)}),
                ),
                origins={**filled.reading.origins, name: "step"},
                evidence=dict(filled.reading.evidence),
                doubts=[*doubts, *describe_match(named, found, writes=writes)],
                read_by=step.get("read_by") or RULES,
                named=f"{name} is that of {named.said.text!r} in {named.tool}",
            )
        }

    async def _ask_which(
        self,
        state: RunState,
        step: StepState,
        tool: ToolDefinition,
        filled: Filled,
        named: NamedLookup,
        found: Found,
    ) -> RunState:
        """Which row is meant, where none or several are called as the task says."""
        name = named.lookup.parameter
        question = questions.build_which(
            questions.build_missing(
                step["id"],
                step.get("rounds", 0),
                step["tool"],
                tool.input_schema,
                filled.arguments,
                (name,),
                "",
            ),
            named.said.text,
            named.tool,
            list_choices(named, found),
            len(found.matches),
        )
        return await self._keep_answer(state, step, filled, question)

    def _recall(
        self, state: RunState, step: StepState, tool: ToolDefinition, filled: Filled
    ) -> Mapping[str, Recalled]:
        """What of the missing arguments earlier answers of the session give; nothing where that is
        not all of them.
        """
        session = state.get("session", "")
        if not session or not filled.missing or self.context.quiet:
            return {}
        memory = self.context.store.sessions.load_memory(session, time.time())
        found = recall_arguments(step["task"], memory, tool.input_schema, filled.missing)
        return found if found.keys() == {*filled.missing} else {}

    def _keep_recalled(
        self, state: RunState, step: StepState, filled: Filled, recalled: Mapping[str, Recalled]
    ) -> RunState:
        """The step with remembered values, which are shown before they are used."""
        values = {name: each.value for name, each in recalled.items()}
        results = self.context.parts.results
        sources = {name: encode_servers(results, each.tool) for name, each in recalled.items()}
        doubts = [
            f"{name} is read as {each.words!r}, out of what {each.tool} answered."
            for name, each in recalled.items()
        ]
        said = " ".join(each.words for each in recalled.values())
        unused = tuple(each for each in filled.reading.unused if each not in said)
        reading = replace(filled.reading, unused=unused)
        return {
            "steps": change_step(
                state,
                step["id"],
                arguments={**filled.arguments, **values},
                origins={**filled.reading.origins, **dict.fromkeys(values, "memory")},
                taken={**(step.get("taken") or {}), **sources},
                evidence={name: each.words for name, each in recalled.items()},
                doubts=[*list_doubts(reading), *doubts],
                read_by=step.get("read_by") or RULES,
            )
        }

    async def _ask(
        self, state: RunState, step: StepState, tool: ToolDefinition, filled: Filled
    ) -> RunState:
        if step.get("choice") == "given" and self.context.quiet:
            problem = f"the task does not say {', '.join(filled.missing)}."
            return {"result": build_missing_arguments(step["tool"], tool, problem)}
        question = questions.build_missing(
            step["id"],
            step.get("rounds", 0),
            step["tool"],
            tool.input_schema,
            filled.arguments,
            filled.missing,
            filled.reading.problem,
        )
        lists = find_lists(self.context.parts, get_server(step["tool"]), tool, filled.missing)
        question = questions.name_lists(question, lists)
        question = questions.suggest_values(question, self._find_earlier(step["tool"]))
        return await self._keep_answer(state, step, filled, question)

    def _find_earlier(self, tool: str) -> Mapping[str, Any]:
        """What the run that is done again called a tool with."""
        earlier = self.context.job.request.get(EARLIER)
        found = earlier.get(tool) if isinstance(earlier, Mapping) else None
        return found if isinstance(found, Mapping) else {}

    async def _keep_answer(
        self, state: RunState, step: StepState, filled: Filled, question: Question
    ) -> RunState:
        """The step with the arguments that whoever asked answers."""
        answer = self.context.ask(question, state)["arguments"]
        told, taken = await self.context.take_arguments(state, answer)
        return {
            "steps": change_step(
                state,
                step["id"],
                arguments=merge_arguments(filled.arguments, told),
                origins={**filled.reading.origins, **_mark_given(filled.arguments, told)},
                taken={**(step.get("taken") or {}), **taken},
                read_by=step.get("read_by") or CLIENT,
                # Who fills in a call has seen it.
                shown=step.get("shown", False) or step.get("choice") == "confirm",
            )
        }

    async def _ask_endpoint(self, step: StepState, tool: ToolDefinition) -> dict[str, Any] | None:
        """The arguments as the endpoint reads them; None where it cannot."""
        if holds_reference(step.get("arguments") or {}):
            return None
        author = await self.context.open_author(get_server(step["tool"]))
        if author is None:
            return None
        try:
            found = await extract_arguments(author, step["task"], tool)
        except (AuthorFailed, BudgetSpent):
            return None
        if found.problem:
            return None
        arguments = dict(found.arguments)
        by = found.model or author.name
        told = {"arguments": arguments, "origins": dict.fromkeys(arguments, "model")}
        return {**told, "read_by": by}


def _fits(tool: ToolDefinition, arguments: Mapping[str, Any]) -> bool:
    """Whether arguments are what a tool takes, as far as that can be told before references are
    resolved.
    """
    if not holds_reference(arguments):
        return get_checker(tool.input_schema).find_problem(dict(arguments)) is None
    return {*tool.input_schema.get("required", ())} <= arguments.keys()


def _mark_given(known: Mapping[str, Any], told: Mapping[str, Any]) -> dict[str, str]:
    """The origins of answered arguments. One of which a part was known before keeps that origin:
    nobody gave all of it.
    """
    return {
        name: "given"
        for name, value in told.items()
        if not (
            isinstance(value, Mapping)
            and isinstance(before := known.get(name), Mapping)
            and before.keys() - value.keys()
        )
    }


def bind_results(
    step: StepState, tool: ToolDefinition, earlier: Sequence[tuple[StepState, ToolDefinition]]
) -> Mapping[str, Any]:
    """The step's arguments, with references to results of the steps before it where name and type
    agree plainly. `earlier` are those steps, each with its tool.
    """
    before = tuple(Step(each["id"], each["task"]) for each, _ in earlier)
    own = Step(
        step["id"],
        step["task"],
        step["tool"],
        step.get("arguments") or {},
        tuple(each.id for each in before),
        step.get("uses", ""),
        step.get("pick", ""),
    )
    outputs = {each["id"]: find_answer_schema(made) for each, made in earlier}
    nouns = {each["id"]: find_noun(made.name) for each, made in earlier}
    bound = bind_steps(Plan((*before, own)), outputs, {step["id"]: tool.input_schema}, nouns)
    return bound.steps[-1].arguments


def _doubt_unbound(step: StepState, filled: Filled) -> tuple[str, ...]:
    """What a step says of the result before it that none of its arguments takes: `list the orders
    of each` for a tool that lists all orders.
    """
    said = "each" if step.get("pick") == "each" else step.get("uses", "")
    if not said or not step.get("after") or holds_reference(filled.arguments):
        return ()
    return (f"{said!r} of the task went into no argument: it is called without what came before.",)
