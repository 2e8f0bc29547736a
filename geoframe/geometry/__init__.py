"""Pure tensor functions: directions, pushforwards, responses, noise. Knows nothing of the framework."""
