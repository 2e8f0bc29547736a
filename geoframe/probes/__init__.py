"""Built-in measurements, one a file: thin shells over `geoframe.geometry`."""
