"""What runs in `.venv-peers`: an adapter for each peer and the process around it. No more than that is installed."""
