"""What is said: messages, requests, events, answers and failures; pure."""
