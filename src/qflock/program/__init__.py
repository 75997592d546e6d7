"""Programs: circuits as flat data, and the passes that make them small."""
