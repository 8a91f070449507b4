"""The Python host: one process that runs one instance of a Python model for the Nereid server.

Started by the server (src/host-command.ts) through __main__.py, with a socket on file descriptor 3.
"""
