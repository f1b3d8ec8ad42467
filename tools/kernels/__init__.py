"""Compiles kernels ahead of time: Python source to Cython, and that to extension modules."""
