"""Random NumPy programs, executed with the host NumPy and with legate.numpy in one process and compared bit by bit.

`state.py` holds what a growing program knows, `creation.py`, `views.py`, `operations.py`, `writes.py`, `guests.py` each grow it by a statement,
`program.py` chooses among them, `worker.py` executes, `campaign.py` drives and shrinks, `known.py` lists what differs and why. `tests/difference.py` judges.
"""
