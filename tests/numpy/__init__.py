"""Room by room: operations over a table of operands, compared with the host NumPy in the same process."""
