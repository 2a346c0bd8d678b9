"""Single-site Gibbs sampling."""
