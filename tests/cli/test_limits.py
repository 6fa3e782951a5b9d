"""R13, H5: `ropewalk limits` lists, sets and removes."""

from __future__ import annotations

import asyncio

from ropewalk import App
from tests.cli.conftest import Run
from tests.cli.limited_shop import bill, export, invite, remind


def test_set_list_and_remove(ropewalk: Run, app: App) -> None:
    app.sync.enqueue("add", {"a": 1, "b": 2})
    assert ropewalk("limits", "list").out == "there are no limits\n"
    done = ropewalk("limits", "set", "--key", "customer:*", "--concurrency", "2", "--rate", "100/0.5")
    assert (done.code, done.out) == (0, "key customer:*  at most 2 at once, at most 100 in 0.5 s (sliding)\n")
    assert ropewalk("limits", "set", "--queue", "mail", "--rate", "9/60", "--algorithm", "token", "--json").json == {
        "set": True
    }
    assert ropewalk("limits", "list").out.splitlines() == [
        "KIND   NAME        RUNNING  AT ONCE  RATE                    OF              FROM",
        "key    customer:*  0        2        100 in 0.5 s (sliding)  tenant default  set at run time",
        "queue  mail        0                 9 in 60 s (token)       tenant default  set at run time",
    ]
    assert ropewalk("limits", "list", "--tenant", "acme", "--json").json == {"limits": []}
    gone = ropewalk("limits", "remove", "--queue", "mail")
    assert (gone.code, gone.out) == (0, "queue mail  no longer has a limit\n")
    [left] = ropewalk("limits", "list", "--json").json["limits"]
    assert left == {
        "kind": "key",
        "name": "customer:*",
        "tenant": "default",
        "declared": False,
        "stored": True,
        "declared_by": [],
        "concurrency": 2,
        "rate": {"count": 100, "per": 0.5, "algorithm": "sliding"},
        "in_use": 0,
        "keys": {},
    }


def test_what_cannot_be_is_refused(ropewalk: Run, app: App) -> None:
    app.sync.enqueue("add", {"a": 1, "b": 2})
    wrong = {
        ("set", "--key", "k"): "give concurrency, rate or both, or remove the limit",
        ("set", "--concurrency", "1"): "one of queue, type and key, and got none",
        ("set", "--key", "k", "--queue", "q", "--concurrency", "1"): "and got queue='q' and key='k'",
        ("set", "--key", "k", "--concurrency", "0"): "concurrency=0 must be at least 1",
        ("set", "--key", "k", "--rate", "often"): "--rate 'often' is not N/SECONDS, like 100/60",
        ("set", "--key", "k", "--rate", "5/0"): "per=0.0 must be more than 0 seconds",
    }
    for arguments, message in wrong.items():
        refused = ropewalk("limits", *arguments)
        assert (refused.code, refused.out) == (2, "")
        assert message in refused.err
    missing = ropewalk("limits", "remove", "--key", "k")
    assert (missing.code, missing.err) == (1, "error: key k had no limit\n")


def test_of_all_tenants_together(ropewalk: Run, app: App) -> None:
    """R13, H5: apart from those a tenant has of its own."""
    app.sync.enqueue("add", {"a": 1, "b": 2})
    ropewalk("limits", "set", "--type", "send", "--concurrency", "3", "--every-tenant")
    assert ropewalk("limits", "list").out.splitlines()[1:] == [
        "type  send  0        3              every tenant  set at run time"
    ]
    [held] = ropewalk("limits", "list", "--every-tenant", "--json").json["limits"]
    assert (held["kind"], held["name"], held["concurrency"]) == ("type", "send", 3)
    assert ropewalk("limits", "remove", "--type", "send").code == 1
    assert ropewalk("limits", "remove", "--type", "send", "--every-tenant").code == 0


def test_those_that_code_declares_are_listed_and_say_where_they_come_from(ropewalk: Run, url: str) -> None:
    """Before a worker has put them into the store, and afterwards."""
    there = ("limits", "list", "--app", "limited_shop:app")
    header = "KIND  NAME    RUNNING  AT ONCE  RATE                 OF            FROM"
    assert ropewalk(*there, SHOP_URL=url).out.splitlines() == [
        header,
        "key   bill:*  0        1                             every tenant  code of bill, when a worker starts",
        "key   mail    0                 50 in 1 s (sliding)  every tenant  code of invite, when a worker starts",
        "type  export  0        4                             every tenant  code of export, when a worker starts",
    ]
    limited = App(url, jobs=[export, invite, bill, remind])

    async def start_a_worker() -> None:
        async with limited, limited.worker():
            pass

    asyncio.run(start_a_worker())
    assert ropewalk(*there, SHOP_URL=url).out.splitlines() == [
        header,
        "key   bill:*  0        1                             every tenant  code of bill",
        "key   mail    0                 50 in 1 s (sliding)  every tenant  code of invite",
        "type  export  0        4                             every tenant  code of export",
    ]
    [_, first, *_] = ropewalk("limits", "list").out.splitlines()
    assert first.endswith("every tenant  code"), "without the app at hand"
    told = ropewalk(*there, "--json", SHOP_URL=url).json["limits"][0]
    assert (told["declared"], told["stored"], told["declared_by"], told["tenant"]) == (True, True, ["bill"], None)
