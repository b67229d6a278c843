"""Prometheus metrics, read from the registry when asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from registry.store import Store


class StoreCollector(Collector):
    def __init__(self, store: Store) -> None:
        self._store = store

    def collect(self) -> Iterator[Metric]:
        yield GaugeMetricFamily(
            "toolwright_frozen", "1 while frozen.", value=self._store.freeze_state().frozen
        )
        yield _gauge("servers", "state", Counter(s.state for s in self._store.summaries()))
        yield _gauge("jobs", "state", Counter(job.state for job in self._store.jobs(limit=1000)))
        yield _gauge("approvals", "state", Counter(a.state for a in self._store.approvals()))
        yield _gauge("processes", "kind", Counter(p.kind for p in self._store.processes()))
        calls = CounterMetricFamily("toolwright_calls", "Calls recorded.", labels=["server", "ok"])
        for server in self._store.summaries():
            standing = server.standing
            calls.add_metric([server.name, "true"], standing.successful)
            calls.add_metric([server.name, "false"], standing.total - standing.successful)
        yield calls
        yield from self._models()

    def _models(self) -> Iterator[Metric]:
        """What models were asked for each server, in tokens and money."""
        labels = ["server", "author"]
        asked = CounterMetricFamily("toolwright_model_questions", "Models asked.", labels=labels)
        tokens = CounterMetricFamily(
            "toolwright_model_tokens", "Tokens of models.", labels=[*labels, "direction"]
        )
        money = CounterMetricFamily("toolwright_model_cost", "Money for models.", labels=labels)
        for of, spent in self._store.spent_by_server().items():
            asked.add_metric([*of], spent.calls)
            tokens.add_metric([*of, "in"], spent.tokens_in)
            tokens.add_metric([*of, "out"], spent.tokens_out)
            money.add_metric([*of], spent.cost)
        yield from (asked, tokens, money)


def _gauge(name: str, label: str, counts: Counter[str]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"toolwright_{name}", f"{name} by {label}.", labels=[label])
    for value, count in sorted(counts.items()):
        family.add_metric([value], count)
    return family
