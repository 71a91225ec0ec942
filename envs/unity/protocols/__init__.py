"""A Unity player in a process of its own, and the two protocols of ML-Agents that it may speak.

In come a program's path and actions; out come what bodies observe and gain. Everything runs in the thread
that steps the environments, but for the calls of the gRPC server, which pass messages on.
"""
