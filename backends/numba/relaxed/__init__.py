"""Block Gibbs and DHMC in compiled code, on tiles of chains."""
