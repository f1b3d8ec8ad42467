"""Declared types as codecs: Constructs of each type, and functions generated from them."""
