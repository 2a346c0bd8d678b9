"""Message passing and mean field: BP, TRW, naive mean field."""
