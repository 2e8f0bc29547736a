"""Statistics of stored results: arrays below, labelled datasets above. No torch."""
