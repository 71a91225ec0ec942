"""What a run says of itself: how it can be done again, its page, its tracker, snapshots that ship."""
