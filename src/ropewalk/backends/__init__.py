"""Stores. Each knows the ports and the domain; none knows the engine or another store."""
