"""Real servers that others wrote, forged and driven as a user does, and judged by what they did."""
