"""A small run beside another library: what a step and an update cost where networks cost next to nothing."""
