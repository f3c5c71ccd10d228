"""Ways for events to reach people and programs."""
