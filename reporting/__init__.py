"""Results for readers: scores, graphs, pages, TensorBoard, the live view.

Plain numbers come in; files and terminal output go out. Everything runs in the caller's thread; no other room
is imported.
"""
