"""The app that `ropewalk worker tests.torture.outage_app:app` serves in the outage matrix (test_outages.py).

Each process writes what happens in it into the history of the directory that ROPEWALK_OUTAGE_DIRECTORY names.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from ropewalk import App, Event
from tests.torture import jobs
from tests.torture.harness import HISTORY
from tests.torture.history import Recorder

recorder = jobs.recorder = Recorder(Path(os.environ["ROPEWALK_OUTAGE_DIRECTORY"]) / HISTORY)


def on_event(event: Event) -> None:
    if event.kind == "succeeded":
        recorder.put("accepted", event.job_id, attempt=event.attempt, at=time.monotonic())
    elif event.kind == "lease_lost":
        recorder.put("lease_lost", event.job_id, attempt=event.attempt, reason=event.message)


app = App(os.environ["ROPEWALK_URL"], jobs=jobs.ALL, on_event=on_event)
