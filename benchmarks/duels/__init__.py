"""Other methods with the same promise, side by side with pacbound, on their own data."""
