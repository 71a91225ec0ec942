"""How fast every part of a run is, beside slow twins that work as Toromanoff et al. 2019 did."""
