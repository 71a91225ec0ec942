"""The live page: every run on a Redis server, and in the folders of results, in a browser.

In: what the processes of runs publish in Redis, read by a client that cannot write, and the tables in
--path-to-results. Out: one page (app.py), served to this machine alone or to who has its token (access.py).

A process of its own runs here (live_page.py): threads of its web server, under the one lock of `Watch`.
No code that Redis or a file names is run; a user's own environment or agent is only shown by its name.
"""
