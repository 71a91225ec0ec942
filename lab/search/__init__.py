"""Mode search: trials that differ in some flags, on Ray Tune, and what they come to."""
