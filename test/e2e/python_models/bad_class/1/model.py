"""Has no model class."""
