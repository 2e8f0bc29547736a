"""Small networks of the papers that no library carries."""
