"""What is measured: ropewalk itself, the floors and the peers, behind one face (subject.py)."""
