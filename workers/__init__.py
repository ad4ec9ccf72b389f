"""The worker: claims jobs, runs their handlers under a lease, records what became of them. No web, no GraphQL here."""
