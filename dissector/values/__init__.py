"""
What keys and values of records say: formats, schemas and their decoders.

Nothing here knows captures: a key or a value is bytes with the headers of its record and the name
of its topic. Schemas come from captures too, and are as untrusted as the bytes: they are
interpreted by our own readers, whose depth and output are limited, and never reach a decoder in C.
"""
