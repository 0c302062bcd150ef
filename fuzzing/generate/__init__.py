"""Generation: cases made of what is known about operators, where no test of a library is at hand."""
