"""Tools for agent frameworks: one module per framework, each imported by whoever uses it.

A module's framework comes with the extra of the module's name, and is imported when a tool is made.
"""
