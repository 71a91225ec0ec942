"""Operations that are written for speed, behind functions with the plain operation's name and signature.

In come arrays or tensors, out go the plain twin's numbers, up to rounding. The twin is the function's own
body or `plain_...` beside it, in readable NumPy or PyTorch; that of `open_chunks` opens nothing. `choice` is
the one switch between twins and compiled `loops` (`--kernels`). Loops run on a CPU in the caller's thread
without the GIL, and large ones in shares on helper threads besides, as many as PyTorch may use.

Networks: `heads`, `data_efficient`; `tensors` says which tensors loops take, others go to the twin.
Experience: `write_chunks`, `read_chunks`, `sum_tree`; `layouts` says what they are given. Two have no loops:
`adam` is quick to start, on any device, and `cuda_graph` gives a GPU many operations in one launch.
"""
