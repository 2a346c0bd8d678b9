"""One module a library: how it is asked, in the way that its own documentation says is fastest."""
