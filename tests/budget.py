"""How much is tried of what is drawn at random: ROPEWALK_BUDGET (`make verify` sets it) times the usual."""

from __future__ import annotations

import os
from typing import Final

BUDGET: Final = int(os.environ.get("ROPEWALK_BUDGET", "1"))
EXAMPLES: Final = 100 * BUDGET
"""of a property that does not ask for a number of its own"""
