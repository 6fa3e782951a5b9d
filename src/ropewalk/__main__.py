"""`python -m ropewalk` is `ropewalk`."""

from __future__ import annotations

from ropewalk.cli.main import main

if __name__ == "__main__":
    main()
