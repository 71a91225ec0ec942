"""Operations that are written for speed, behind functions with the plain operation's name and signature.

In come arrays or tensors on a CPU, out go the same numbers as from the plain twin: the function's own body,
or `plain_...` beside it, ten readable lines of NumPy or PyTorch. `choice` is the one switch between twins and
compiled `loops` (`--kernels`). Loops run in the caller's thread without the GIL, and large ones in shares on
helper threads besides, as many as PyTorch may use.

Networks: `heads`, `data_efficient`; `tensors` says for which tensors loops are, other
devices and types take the plain twin. Experience: `write_chunks`, `read_chunks`, `sum_tree`; `layouts` says
what they are given. `adam` is quick to start, and computes with PyTorch's own kernel on any device.
"""
