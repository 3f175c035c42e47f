"""What a planner returns: slots of time, and how a window is answered from them, with computed variances."""
