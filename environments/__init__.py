"""Worlds: tasks, observations, rewards and grades. They know nothing of memory or models."""
