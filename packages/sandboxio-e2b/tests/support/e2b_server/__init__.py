"""A local server that speaks E2B's wire protocol and really executes, for tests of the adapter.

`server` is the way in; `faults` makes it misbehave. Sandboxes are machines behind `ports`.
"""
