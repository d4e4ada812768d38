"""What tests of code that uses sandboxio need: the fake backend, the contract suite, the pytest plugin."""
