"""The shell of a virtual sandbox and its programs."""
