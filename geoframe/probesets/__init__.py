"""Probe sets: one file a source, and the frame in which they are loaded."""
