"""How many jobs may run or start: fleet limits, rates, quotas and the headroom they leave."""
