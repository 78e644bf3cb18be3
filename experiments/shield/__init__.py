"""The shield's experiments: what makes the robot's networks, and what they are worth."""
