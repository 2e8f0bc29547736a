"""Summaries of stored results: the tables that studies print, and papers' claims beside what was measured. No torch."""
