"""The papers: simulations A to E, Equations 1 to 4, and the claims of publications."""
