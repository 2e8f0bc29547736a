"""Encoders: one source of networks a file."""
