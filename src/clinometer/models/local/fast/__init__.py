"""What makes local models fast: see README.md beside this file."""
