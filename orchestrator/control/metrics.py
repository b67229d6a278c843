"""Prometheus metrics, read from the registry at each scrape."""

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
            "toolwright_frozen", "1 while frozen.", value=self._store.processes.get_freeze().frozen
        )
        yield _build_gauge(
            "servers", "state", Counter(s.state for s in self._store.servers.find_summaries())
        )
        yield _build_gauge(
            "jobs", "state", Counter(job.state for job in self._store.jobs.find(limit=1000))
        )
        yield _build_gauge(
            "approvals", "state", Counter(a.state for a in self._store.approvals.find())
        )
        yield _build_gauge(
            "processes", "kind", Counter(p.kind for p in self._store.processes.find())
        )
        yield from self._collect_stalls()
        calls = CounterMetricFamily("toolwright_calls", "Calls recorded.", labels=["server", "ok"])
        for server in self._store.servers.find_summaries():
            standing = server.standing
            calls.add_metric([server.name, "true"], standing.successful)
            calls.add_metric([server.name, "false"], standing.total - standing.successful)
        yield calls
        yield from self._collect_model_usage()

    def _collect_stalls(self) -> Iterator[Metric]:
        """What held up the event loops of running processes: how often, and the longest time."""
        labels = ["kind", "process"]
        stalls = CounterMetricFamily(
            "toolwright_loop_stalls", "Turns of the event loop over 50 ms.", labels=labels
        )
        longest = GaugeMetricFamily(
            "toolwright_loop_longest_stall_seconds", "The longest of them.", labels=labels
        )
        for process in self._store.processes.find():
            stalls.add_metric([process.kind, process.id], process.stalls)
            longest.add_metric([process.kind, process.id], process.longest_stall)
        yield from (stalls, longest)

    def _collect_model_usage(self) -> Iterator[Metric]:
        """Use of models by server and author: questions, tokens, money."""
        labels = ["server", "author"]
        asked = CounterMetricFamily("toolwright_model_questions", "Models asked.", labels=labels)
        tokens = CounterMetricFamily(
            "toolwright_model_tokens", "Tokens of models.", labels=[*labels, "direction"]
        )
        money = CounterMetricFamily("toolwright_model_cost", "Money for models.", labels=labels)
        for of, spent in self._store.model_usage.sum_by_server().items():
            asked.add_metric([*of], spent.calls)
            tokens.add_metric([*of, "in"], spent.tokens_in)
            tokens.add_metric([*of, "out"], spent.tokens_out)
            money.add_metric([*of], spent.cost)
        yield from (asked, tokens, money)


def _build_gauge(name: str, label: str, counts: Counter[str]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"toolwright_{name}", f"{name} by {label}.", labels=[label])
    for value, count in sorted(counts.items()):
        family.add_metric([value], count)
    return family
