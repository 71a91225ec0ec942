"""Operations that are written for speed, behind functions with the plain operation's name and signature.

In come arrays or tensors on a CPU, out go the same numbers as from the plain twin (`plain_...`) beside each
operation: ten readable lines of NumPy or PyTorch. `choice` is the one switch between both (`--kernels`);
`tensors` says for which tensors loops are, other devices and types take the plain twin. Loops run in the
caller's thread without the GIL, and large ones in shares on helper threads besides, as many as PyTorch may
use.

Networks: `noisy_linear`, `gated_hidden` (their loops: `head_loops`), `pixels`, `data_efficient`.
Experience: the others. `compiled` makes a loop of a Python function and keeps it on disk.
"""
