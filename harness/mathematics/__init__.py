"""Mathematics on the host that methods and kernels of several backends share."""
