"""Compiled loops of the operations beside this folder, one file for each operation or kin of operations.

In come NumPy arrays, which a loop reads, writes or fills; it runs in the caller's thread without the GIL.
Nothing here chooses: the operations do (`kernels.choice`), and check what loops must not be given. `compiled`
makes a loop of a Python function, `on_disk` keeps it for later processes.
"""
