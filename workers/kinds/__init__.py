"""The built-in kinds, written against the same face as anybody's."""
