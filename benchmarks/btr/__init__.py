"""BTR's update beside the same one as PyTorch alone would have it."""
