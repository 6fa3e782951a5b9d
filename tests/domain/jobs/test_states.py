"""The table of legal moves, walked in full, and the derived states over every input."""

from __future__ import annotations

from itertools import product

import pytest

from ropewalk.domain.jobs.states import (
    GIVES_ATTEMPT_BACK,
    KEEPS_ITS_PLACE,
    LEGAL_MOVES,
    SETTLING,
    TERMINAL,
    Move,
    State,
    Status,
    is_legal,
    state_of,
)

# Said a second time, the other way round, so that a change of the rules is made on purpose.
WAYS = """
    -           waiting      submit
    -           running      submit
    waiting     running      claim
    waiting     dead_letter  expire set_aside
    waiting     cancelled    cancel
    waiting     failed       doom end
    waiting     completed    skip end
    running     waiting      retry defer suspend release lose
    running     completed    complete end
    running     failed       fail end
    running     dead_letter  bury expire set_aside
    running     cancelled    cancel
    failed      waiting      restart
    dead_letter waiting      restart
    cancelled   waiting      restart
    completed   -            delete
    failed      -            delete
    dead_letter -            delete
    cancelled   -            delete
"""
PLACES: tuple[Status | None, ...] = (None, *Status)


def ways() -> set[tuple[Move, Status | None, Status | None]]:
    rows = [line.split() for line in WAYS.strip().splitlines()]
    return {(Move(move), place(before), place(after)) for before, after, *moves in rows for move in moves}


def place(word: str) -> Status | None:
    return None if word == "-" else Status(word)


def test_every_triple_is_legal_exactly_when_the_table_says_so() -> None:
    triples = set(product(Move, PLACES, PLACES))
    assert {triple for triple in triples if is_legal(*triple)} == ways()


def test_every_move_has_a_row() -> None:
    assert set(LEGAL_MOVES) == set(Move)


@pytest.mark.parametrize("status", TERMINAL)
def test_terminal_absorbs(status: Status) -> None:
    leaving = {move for move, after in product(Move, PLACES) if is_legal(move, status, after)}
    assert leaving <= {Move.RESTART, Move.DELETE}


@pytest.mark.parametrize("move", SETTLING)
def test_a_settlement_starts_from_running(move: Move) -> None:
    assert is_legal(move, Status.RUNNING, SETTLING[move])


def test_only_moves_back_to_waiting_give_the_attempt_back() -> None:
    assert all(SETTLING[move] is Status.WAITING for move in GIVES_ATTEMPT_BACK)


def test_what_no_handler_asked_for_costs_no_place_in_line() -> None:
    assert {Move.RELEASE, Move.LOSE} == KEEPS_ITS_PLACE


NOW = 1000
EVERY_INPUT = list(product(Status, (0, 1, 5), (NOW - 1, NOW, NOW + 1), Move))


def test_state_over_every_input() -> None:
    for status, unmet, run_at, last_move in EVERY_INPUT:
        state = state_of(status, unmet=unmet, run_at=run_at, last_move=last_move, now=NOW)
        told = (status, unmet, run_at, last_move)
        if status is not Status.WAITING:
            assert state.value == status.value, told
        elif unmet:
            assert state is State.PENDING, told
        elif run_at <= NOW:
            assert state is State.SCHEDULED, told
        else:
            assert state is (State.RETRYING if last_move is Move.RETRY else State.DELAYED), told


def test_every_state_is_reached() -> None:
    reached = {state_of(s, unmet=unmet, run_at=at, last_move=move, now=NOW) for s, unmet, at, move in EVERY_INPUT}
    assert reached == set(State)


def test_time_alone_makes_a_delayed_job_ready() -> None:
    def at(now: int) -> State:
        return state_of(Status.WAITING, unmet=0, run_at=NOW, last_move=Move.SUBMIT, now=now)

    assert [at(NOW - 1), at(NOW)] == [State.DELAYED, State.SCHEDULED]
