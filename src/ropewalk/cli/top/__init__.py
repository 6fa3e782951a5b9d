"""`ropewalk top`: a live view of a store. One module gathers (gathering.py), the others only show what it found.

snapshot    what there is to show                 frame      a snapshot on so many columns and lines
gathering   asks the app for it                   sections   its tables
pace        how fast, between two looks           plot       its bars
screen      the terminal, the keys, the loop      figures    its numbers, with their units
"""
