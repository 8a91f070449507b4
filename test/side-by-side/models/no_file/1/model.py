"""Not the file that the config names."""
