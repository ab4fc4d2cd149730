"""``tidegate serve``: a long-running process that speaks the providers' own HTTP APIs.

It needs the extra ``tidegate[daemon]``, and nothing but the command line imports it.
"""
