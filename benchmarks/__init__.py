"""Measurements of sandboxio as ratios: see README.md beside this file."""
