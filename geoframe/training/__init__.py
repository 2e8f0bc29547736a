"""Training as part of a study: a frozen recipe, its checkpoints in a cache, the encoder that is made of one."""
