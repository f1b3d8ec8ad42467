"""
One field of many keys or values, by kernels.

A program of steps, made of a schema and a path, finds the field and checks all that is around it.
What a kernel accepts, the schema's decoder accepts with the same value; what it refuses is left to
that.
"""
