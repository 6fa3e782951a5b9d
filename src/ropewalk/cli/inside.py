"""The two things the worker command tells about an app that the app's public face does not."""

from __future__ import annotations
