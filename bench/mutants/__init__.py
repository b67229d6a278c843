"""The mutation check: do the stages reject servers that are broken?

Every operator breaks a compiled bundle in one way. Whether a mutant differs from its original at
all is decided by running both on a corpus of calls that shares nothing with the stages' cases; one
that differs and passes the stages is a survivor, and a defect of the stages.
"""
