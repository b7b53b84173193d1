"""The limits of the servers: penstock's rows, moved by bare statements without an engine.

They have a table, or a hash, of their own with nothing but what a claim needs beside it: no
partitions, no counters, no wake-ups. What they check is the fence, and nothing else.
"""
