"""What each wire's bodies mean; pure."""
