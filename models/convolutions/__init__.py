"""Kinds of convolutions, and what is built of them."""
