"""The matrix (matrix.py), cell by cell."""
