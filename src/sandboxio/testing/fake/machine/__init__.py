"""The machine of a virtual sandbox: processes, streams and files."""
