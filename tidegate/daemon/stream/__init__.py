"""One client's response: when its status goes out, what is written, and when it is cut off."""
