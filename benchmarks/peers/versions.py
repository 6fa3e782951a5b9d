"""Which version of a peer is measured: that in its lock."""

from __future__ import annotations

import json
import re

from benchmarks.ordered import ROOT
from benchmarks.peers.known import Peer
from benchmarks.peers.process import NODE_FOLDER

LOCK = ROOT / "requirements" / "peers.txt"
NODE_LOCK = NODE_FOLDER / "package-lock.json"


def version(peer: Peer) -> str:
    if peer.language == "node":
        return str(json.loads(NODE_LOCK.read_text())["packages"][f"node_modules/{peer.package}"]["version"])
    found = re.search(rf"^{re.escape(peer.package)}==(\S+)", LOCK.read_text(), re.MULTILINE)
    assert found is not None, f"{peer.package} is not in {LOCK.name}: make lock-peers"
    return found[1]
