"""Networks: torch.nn.Module only, one file for each architecture, written as their papers are.

In come observations [B, H, *frame], taus and noise, out go estimates in float32. A network draws nothing at
random and knows no agent: noise is handed in. It runs in the thread that calls it; what makes it fast on a
CPU is behind plain operations of kernels/. Names and shapes of parameters are those of snapshots.
"""
