"""Questions to models: a row before they are asked, added up by job, server and day."""

from __future__ import annotations

from dataclasses import replace

from registry.jobs.model_usage import ModelCall, ModelUsage
from registry.needs import BudgetLine
from registry.store import Store

CALL = ModelCall("j1", "lengths", "code", "openai", "Write.", "d1", 100.0, 50, 100, 0.5)
LINE = BudgetLine("job", "tokens", 150, 100)


def never(own: ModelUsage, others: ModelUsage) -> None:
    return None


def begun(store: Store, call: ModelCall, since: float = 0.0) -> ModelCall:
    stored = store.model_usage.begin_call(call, since, never)
    assert isinstance(stored, ModelCall)
    return stored


def test_a_question_counts_as_the_most_it_may_cost_until_it_is_answered(store: Store) -> None:
    asked = begun(store, CALL)
    assert store.model_usage.sum_for_job("j1") == ModelUsage(50, 100, 0.5, 1, 1)
    answer = replace(
        asked, state="answered", tokens_in=40, tokens_out=9, cost=0.1, content={"code": "x"}
    )
    store.model_usage.end_call(answer, 101.0)
    assert store.model_usage.sum_for_job("j1") == ModelUsage(40, 9, 0.1, 1, 1)
    assert store.model_usage.find("j1") == (answer,)
    assert [row.kind for row in store.audit.find()] == ["model.answered", "model.asked"]


def test_an_answer_is_found_again_by_its_job_and_prompt_alone(store: Store) -> None:
    answered = replace(begun(store, CALL), state="answered", content={"code": "x"})
    assert store.model_usage.find_answer("j1", "d1") is None
    store.model_usage.end_call(answered, 101.0)
    assert store.model_usage.find_answer("j1", "d1") == answered
    assert store.model_usage.find_answer("j2", "d1") is None
    assert store.model_usage.find_answer("j1", "d2") is None


def test_a_failed_question_is_no_answer_and_is_still_counted(store: Store) -> None:
    failed = replace(begun(store, CALL), state="failed", message="cut")
    store.model_usage.end_call(failed, 101.0)
    assert store.model_usage.find_answer("j1", "d1") is None
    assert store.model_usage.sum_for_server("lengths").tokens == 150


def test_the_verdict_sees_the_job_and_the_others_of_the_day_and_keeps_the_row_out(
    store: Store,
) -> None:
    begun(store, replace(CALL, job="old", started=10.0))
    begun(store, replace(CALL, job="j2", started=200.0))
    begun(store, replace(CALL, job="j3", started=200.0, purpose="arguments"))
    begun(store, replace(CALL, started=10.0))
    seen: list[tuple[ModelUsage, ModelUsage]] = []

    def refusing(own: ModelUsage, others: ModelUsage) -> BudgetLine:
        seen.append((own, others))
        return LINE

    assert store.model_usage.begin_call(replace(CALL, started=300.0), 100.0, refusing) == LINE
    assert seen == [
        (ModelUsage(50, 100, 0.5, 1, 1), ModelUsage(100, 200, 1.0, 2, 1, month_cost=1.5))
    ]
    assert len(store.model_usage.find("j1")) == 1


def test_what_no_job_asked_is_everybodys_and_of_the_day_alone(store: Store) -> None:
    begun(store, replace(CALL, job="", started=10.0))
    begun(store, replace(CALL, job="", started=200.0))
    seen: list[tuple[ModelUsage, ModelUsage]] = []

    def refusing(own: ModelUsage, others: ModelUsage) -> BudgetLine:
        seen.append((own, others))
        return LINE

    store.model_usage.begin_call(replace(CALL, job=""), 100.0, refusing)
    assert seen == [(ModelUsage(), ModelUsage(50, 100, 0.5, 1, 0, month_cost=1.0))]
    assert store.model_usage.sum_for_job("") == ModelUsage()


def test_what_was_spent_is_told_by_server_and_author(store: Store) -> None:
    begun(store, CALL)
    begun(store, replace(CALL, server="units", author="sampling", cost=0.0))
    spent = store.model_usage.sum_by_server()
    assert spent["lengths", "openai"].cost == 0.5
    assert spent["units", "sampling"].tokens == 150
    assert store.model_usage.sum_since(100.0).forges == 1
    assert store.model_usage.sum_since(100.5) == ModelUsage()


def test_a_long_answer_and_odd_texts_are_kept_bounded(store: Store) -> None:
    asked = begun(store, replace(CALL, prompt="a\0\ud800"))
    store.model_usage.end_call(
        replace(asked, state="answered", content={"x": "y" * (3 << 20)}), 101.0
    )
    (kept,) = store.model_usage.find("j1")
    assert kept.content["truncated"] is True


def test_usage_is_summed_by_model_and_by_job_since_a_time(store: Store) -> None:
    for number, job in enumerate(("j1", "j2", "j2", "")):
        call = begun(store, replace(CALL, job=job, started=10.0 + number))
        spent = replace(call, model=f"m{number % 2}", state="answered", cost=float(number))
        store.model_usage.end_call(spent, 20.0)
    usage = store.model_usage
    assert {name: used.cost for name, used in usage.sum_by_model(0.0).items()} == {
        "m1": 4.0,
        "m0": 2.0,
    }
    assert list(usage.sum_by_model(0.0)) == ["m1", "m0"]
    assert {job: used.cost for job, used in usage.sum_by_job(0.0).items()} == {"j2": 3.0, "j1": 0.0}
    assert list(usage.sum_by_job(11.5)) == ["j2"]
    assert usage.sum_by_job(0.0, 1).keys() == {"j2"}
