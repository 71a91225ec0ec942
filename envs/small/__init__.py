"""Games of small pictures and few states: MinAtar, and probes that show whether an agent learns at all."""
