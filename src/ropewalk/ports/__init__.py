"""What the engine needs from the world, as protocols whose docstrings are the contract."""
