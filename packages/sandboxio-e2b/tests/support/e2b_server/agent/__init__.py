"""The programs that run inside a machine. Standard library only, Python 3.9 and later."""
