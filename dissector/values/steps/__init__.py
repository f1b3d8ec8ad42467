"""
One field of many keys or values, or the texts of all of each, by a kernel.

A program of steps, made of a schema and a path, finds the field and checks all that is around it;
another writes the JSON of whole values.
What a kernel accepts, the schema's decoder accepts with the same value; what it refuses is left to
that.
"""
