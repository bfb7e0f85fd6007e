"""Node conditions in, admitted incidents out."""
