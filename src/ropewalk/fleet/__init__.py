"""Fleets: several workers in processes of their own, which one supervisor starts, replaces and drains."""
