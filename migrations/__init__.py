"""The schema's history, in files that are never changed once released."""
