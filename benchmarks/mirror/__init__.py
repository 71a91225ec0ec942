"""A batch from Redis beside one from the mirror of `--gpu-replay`."""
