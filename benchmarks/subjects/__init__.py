"""What is measured: ropewalk itself and the floors, behind one face (subject.py)."""
