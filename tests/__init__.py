"""Every test of the system against its oracle, NumPy. Holds no code of its own."""
