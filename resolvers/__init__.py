"""What can be asked and done: plain async functions over the database layer, which know roles but no GraphQL."""
