"""The codec encodes values as JSON and decodes them again, by their annotations."""
