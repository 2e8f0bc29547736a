"""Figures from stored datasets. No torch."""
