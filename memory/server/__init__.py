"""The connection to Redis or Valkey: clients, time-outs, retries, and whether the server was started anew.

In: a server's address. Out: clients whose errors are sentences. Every process runs here. replies.py says
which errors are waited for; all others end the process.
"""
