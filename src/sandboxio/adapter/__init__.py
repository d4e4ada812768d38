"""The kit that adapters are built from.

Import from its modules: `driver` (what an adapter implements), `provision` (how sandboxes come to
be), `tree_kill`, `tar`, `threads` and `lifetime` (parts worth sharing). The rest is the one path
that every operation takes. All of it is public to adapter authors and under the version promise.
"""
