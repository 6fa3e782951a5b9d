"""The implementation of the Runtime port by the real system, and what is built on it: wake-ups and supervised loops."""
