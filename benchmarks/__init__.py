"""How fast the road is, against baselines in the manner of the system of 2019."""
