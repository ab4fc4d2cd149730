"""How often one key may ask; pure: the time is an argument."""

from __future__ import annotations

import msgspec


class _Bucket(msgspec.Struct):
    left: float
    at_s: float


class RateLimit:
    """A bucket of requests for each owner: it holds a minute's worth and is refilled steadily.

    Args:
        per_minute: requests that one owner may make in a minute; 0 for no limit.
    """

    def __init__(self, per_minute: int) -> None:
        self.per_minute = per_minute
        self._buckets: dict[str, _Bucket] = {}

    def take(self, owner: str, now_s: float) -> float:
        """Count a request of ``owner``.

        Args:
            owner: whose bucket it comes from; as many are kept as there are keys.
            now_s: seconds of a monotonic clock.

        Returns:
            0.0 if the request may go on, else the seconds until the next one may.
        """
        if not self.per_minute:
            return 0.0
        per_s = self.per_minute / 60
        bucket = self._buckets.setdefault(owner, _Bucket(float(self.per_minute), now_s))
        refilled = bucket.left + max(0.0, now_s - bucket.at_s) * per_s
        bucket.left = min(float(self.per_minute), refilled)
        bucket.at_s = max(bucket.at_s, now_s)
        # What floating point loses on the way must not cost a client a second wait.
        if bucket.left >= 1 - 1e-9:
            bucket.left -= 1
            return 0.0
        return (1 - bucket.left) / per_s
