"""What a machine says: parsing is pure, reading is thin, nothing here loads a GPU library."""
