"""At which commits of a history accuracy or cost changed, beyond noise."""
