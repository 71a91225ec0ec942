"""The lab: experiments of many runs, named by spec files.

In come spec files and commands; out go a folder for each session, and tables and graphs over sessions, trials
and experiments. A session is a process tree of its own, and the lab's main thread waits for it. The benchmark
plays several at a time, each in a thread; mode search plays each trial in a process of Ray's.
"""
