"""The very small Python of a virtual sandbox."""
