"""Raw experience in files: write, read, look into (`python -m event_log FILE`), export.

In: an actor's vector steps. Out: episodes, pictures, films, Minari datasets. An actor records in its own
thread; the rest runs as a program.
"""
