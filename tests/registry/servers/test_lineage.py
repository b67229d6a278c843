"""Which server was made from which: trees over all versions, whatever their rows claim."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from registry.servers.lineage import (
    MAX_SHOWN,
    LineageEntry,
    LineageNode,
    build_family_trees,
    to_json,
)
from registry.store import Store
from tests.registry.samples import entry


def line(name: str, version: int = 1, parent: str = "", current: bool = True) -> LineageEntry:
    digest = f"{name}-{version}"
    return LineageEntry(name, version, digest, 1.0, "client", parent, "active", current)


def drawn(branches: tuple[LineageNode, ...]) -> list[Any]:
    """Labels with the labels below them."""
    return [
        [branch.label, *drawn(branch.children)] if branch.children else branch.label
        for branch in branches
    ]


def labels(branches: tuple[LineageNode, ...]) -> list[str]:
    return [x for b in branches for x in (b.label, *labels(b.children))]


UNITS = (
    line("units", 1, current=False),
    line("units", 2, "units@1:units-1"),
    line("temps", 1, "units@1:units-1"),
    line("kelvin", 1, "temps@1:temps-1"),
    line("other"),
)


def test_a_family_is_drawn_whole_from_whichever_member() -> None:
    tree = [["units@1", ["temps@1", "kelvin@1"], "units@2"]]
    for name in ("units", "temps", "kelvin"):
        assert drawn(build_family_trees(UNITS, name)) == tree
    assert drawn(build_family_trees(UNITS, "other")) == ["other@1"]


def test_a_version_that_names_no_parent_follows_the_one_before_it() -> None:
    lines = (line("a", 1), line("a", 2), line("a", 5))
    assert drawn(build_family_trees(lines, "a")) == [["a@1", ["a@2", "a@5"]]]


def test_a_parent_that_is_not_here_is_named_as_such() -> None:
    lines = (line("a", 1, "far@3:abc"), line("b", 1, "far@3:abc"))
    (tree,) = build_family_trees(lines, "a")
    assert (tree.label, tree.line) == ("far@3:abc", None)
    assert [child.label for child in tree.children] == ["a@1", "b@1"]
    assert to_json(tree, "a")["known"] is False


def test_a_parent_of_another_digest_is_not_taken_for_the_one_of_that_name() -> None:
    (tree,) = build_family_trees((line("a"), line("b", 1, "a@1:forged")), "b")
    assert tree.line is None


def test_a_circle_is_drawn_once_round() -> None:
    lines = (line("a", 1, "b@1:b-1"), line("b", 1, "a@1:a-1"))
    assert sorted(labels(build_family_trees(lines, "a"))) == ["a@1", "b@1"]


@given(
    st.dictionaries(
        st.tuples(st.sampled_from("abcd"), st.integers(1, 3)),
        st.one_of(
            st.just(""),
            st.text(max_size=8),
            st.builds(lambda n, v: f"{n}@{v}:{n}-{v}", st.sampled_from("abcd"), st.integers(1, 3)),
        ),
        min_size=1,
    )
)
def test_any_rows_have_finite_trees_with_every_version_of_the_server(
    rows: dict[tuple[str, int], str],
) -> None:
    lines = [line(name, version, parent) for (name, version), parent in rows.items()]
    for name in {name for name, _ in rows}:
        found = labels(build_family_trees(lines, name))
        assert {f"{n}@{v}" for n, v in rows if n == name} <= set(found)


def test_a_large_family_is_cut() -> None:
    lines = [line("a")] + [line(f"b{n}", 1, "a@1:a-1") for n in range(2 * MAX_SHOWN)]
    assert len(labels(build_family_trees(lines, "a"))) <= MAX_SHOWN


def test_a_long_history_is_drawn_from_the_newest_version_back() -> None:
    lines = [line("a", version) for version in range(1, 2 * MAX_SHOWN)]
    found = labels(build_family_trees(lines, "a"))
    assert f"a@{2 * MAX_SHOWN - 1}" in found
    assert len(found) == len(set(found))


def test_the_store_knows_every_version_and_which_is_current(store: Store) -> None:
    store.servers.publish(entry(), now=1.0)
    store.servers.publish(entry("dns", 2, parent="dns@1:dns-1", created_by="client"), now=2.0)
    lines = store.servers.find_lineage()
    assert [(x.key, x.current, x.created_by) for x in lines] == [
        (("dns", 1), False, "compiler"),
        (("dns", 2), True, "client"),
    ]
    assert drawn(build_family_trees(lines, "dns")) == [["dns@1", "dns@2"]]
