"""Values as JSON and back, by their annotations."""
