"""A neighbour of other.py."""
NAME = "beside"
