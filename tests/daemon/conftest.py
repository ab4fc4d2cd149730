"""What all tests of the daemon have in common."""

import uvloop


# libuv opens a pipe for the whole process with its first loop and never closes it: before the first
# test, so that no test is said to have left it behind.
uvloop.new_event_loop().close()
