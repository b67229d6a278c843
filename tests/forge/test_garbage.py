from __future__ import annotations

import gc
import threading

import pytest

from forge.garbage import postpone_collection


def test_no_cycles_are_looked_for_in_a_block_nor_in_one_within_it() -> None:
    assert gc.isenabled()
    with postpone_collection():
        assert not gc.isenabled()
        with postpone_collection():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_block_that_fails_ends_as_others() -> None:
    with pytest.raises(ValueError, match="no"), postpone_collection():
        raise ValueError("no")
    assert gc.isenabled()


def test_a_thread_that_is_done_does_not_end_the_block_of_another() -> None:
    begun, done = threading.Event(), threading.Event()

    def work() -> None:
        with postpone_collection():
            begun.set()
            done.wait()

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait()
    with postpone_collection():
        pass
    assert not gc.isenabled()
    done.set()
    thread.join()
    assert gc.isenabled()


def test_where_nothing_was_looked_for_before_nothing_is_afterwards() -> None:
    gc.disable()
    try:
        with postpone_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
