"""How the parameters of a program are declared, read from a spec file, and shown by --help.

In: the settings.py of each room, which declare theirs by `declare.parameter`, and YAML files. Out: checked
values and help texts; args.py composes the whole table. Imports nothing heavy, so that --help comes at once.
"""
