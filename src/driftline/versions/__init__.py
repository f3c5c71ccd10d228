"""The version repository: every state that a page was seen in, kept whole and cheap."""
