"""Models whose law is known: small ones by enumeration, large ones by their form; and the laws of simple mistakes."""
