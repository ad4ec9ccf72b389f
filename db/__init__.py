"""The storage layer: tables, statements and every transition of a job. It knows no web, no GraphQL and no worker."""
