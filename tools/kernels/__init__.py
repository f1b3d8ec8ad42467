"""Ahead-of-time compilation of kernels: Python source to Cython, then to extension modules."""
