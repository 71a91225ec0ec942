"""Results for readers: tables of a run, pages, films, TensorBoard and trackers, lines of progress.

Plain numbers come in; files and terminal output go out. Everything runs in the caller's thread; no other room
is imported.
"""
