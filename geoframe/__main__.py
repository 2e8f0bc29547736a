"""`python -m geoframe`."""

from geoframe.cli import main

if __name__ == "__main__":
    main()
