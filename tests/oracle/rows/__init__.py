"""
A second reader of captures, slow and simple, as oracle for the rows of `pairs` and `streams`.

It shares no code with the product but the declarations, as data. `plain_tcp` reads packets with
dpkt and puts the segments of each connection in order; `plain_tls` gets decrypted bytes from
tshark; `plain_exchanges` cuts the bytes into frames, and pairs them by a dict of correlation ids;
`plain_messages` reads a frame by its declaration; `plain_rows` makes rows of all that.

It reads whole captures into memory, and expects complete ones: lost bytes, of which the corpus has
none, end it with an AssertionError. Of the rows, only the columns about TLS handshakes are not
judged.
"""
