"""What makes local models fast: see README.md in this folder."""
