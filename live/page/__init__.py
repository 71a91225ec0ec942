"""What the browser shows: the page's layout, panes, figures and words, as Dash's components.

In: what `live.watch` has read. Out: answers to the browser's questions. Threads of the web server run here,
under the one lock of `Watch`.
"""
