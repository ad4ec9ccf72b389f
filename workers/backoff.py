"""How long a failed job waits for its next attempt."""

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential with full jitter, capped: a random part of min(cap, base * 2^(attempt - 1)) seconds.

    Full jitter spreads the retries of jobs that failed together better than a part of it does
    (Brooker, "Exponential Backoff And Jitter", 2015).
    """

    base_seconds: float
    cap_seconds: float

    def delay_seconds(self, attempt: int) -> float:
        """For the attempt that just failed, counted from 1."""
        ceiling = min(self.cap_seconds, self.base_seconds * 2 ** min(attempt - 1, 60))
        return random.uniform(0, ceiling)  # noqa: S311 - spreads load, guards nothing
