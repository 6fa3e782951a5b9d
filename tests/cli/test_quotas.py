"""S9, H5: `ropewalk quotas` lists, sets and removes."""

from __future__ import annotations

from ropewalk import App
from tests.cli.conftest import Run


def test_set_list_and_remove(ropewalk: Run, app: App) -> None:
    app.sync.tenant("acme").enqueue("add", {"a": 1, "b": 2})
    assert ropewalk("quotas", "list").out == "there are no quotas\n"
    every = ("--pending", "100", "--running", "5", "--submissions", "100/0.5", "--payload-bytes", "4096")
    done = ropewalk("quotas", "set", "--tenant", "acme", *every)
    assert done.code == 0
    assert done.out == (
        "tenant acme  at most 100 waiting, at most 5 at once, at most 100 in 0.5 s (sliding) submitted, "
        "at most 4096 bytes an input\n"
    )
    assert ropewalk("quotas", "set", "--tenant", "*", "--pending", "9", "--json").json == {"set": True}
    assert ropewalk("quotas", "list").out.splitlines() == [
        "TENANT  WAITING    RUNNING  SUBMISSIONS                  PAYLOAD BYTES",
        "*       at most 9",
        "acme    1 of 100   0 of 5   0 of 100 in 0.5 s (sliding)  4096",
    ]
    [_, acme] = ropewalk("quotas", "list", "--json").json["quotas"]
    assert acme == {
        "tenant": "acme",
        "pending": 100,
        "running": 5,
        "submissions": {"count": 100, "per": 0.5, "algorithm": "sliding"},
        "payload_bytes": 4096,
        "use": {"pending": 1, "running": 0, "submissions": 0},
    }
    gone = ropewalk("quotas", "remove", "--tenant", "acme")
    assert (gone.code, gone.out) == (0, "tenant acme  no longer has a quota of its own\n")
    missing = ropewalk("quotas", "remove", "--tenant", "acme")
    assert (missing.code, missing.err) == (1, "error: tenant acme had no quota of its own\n")


def test_what_cannot_be_is_refused(ropewalk: Run, app: App) -> None:
    app.sync.enqueue("add", {"a": 1, "b": 2})
    wrong = {
        ("set",): "give pending, running, submissions or payload_bytes, or remove the quota",
        ("set", "--pending", "0"): "pending=0 must be at least 1",
        ("set", "--submissions", "often"): "--submissions 'often' is not N/SECONDS, like 100/60",
    }
    for arguments, message in wrong.items():
        refused = ropewalk("quotas", *arguments)
        assert (refused.code, refused.out) == (2, "")
        assert message in refused.err
