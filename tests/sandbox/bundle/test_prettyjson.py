from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sandbox.bundle.model import format_json

_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.integers() | st.none() | st.booleans(), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(_VALUES)
def test_it_is_what_the_standard_library_writes(value: Any) -> None:
    assert format_json(value) == json.dumps(value, indent=1, ensure_ascii=False)


@given(st.dictionaries(st.text(), _SCALARS, min_size=3))
def test_a_mapping_that_is_there_several_times_is_indented_for_each_place(shared: Any) -> None:
    value = {"a": shared, "b": {"c": shared, "d": [shared, [shared]]}, "e": shared}
    assert format_json(value) == json.dumps(value, indent=1, ensure_ascii=False)
