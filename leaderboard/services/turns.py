"""The lock under which services that must not interleave take turns."""

from leaderboard.models import Entry


def take_turn() -> None:
    """Wait for one's turn; it ends with the transaction, which the caller must have opened.

    The oldest entry's row is the lock, for it is always there. SQLite's writers queue when their
    transaction begins, so there it does nothing.
    """
    Entry.objects.order_by("pk").select_for_update(no_key=True).values_list("pk").first()
