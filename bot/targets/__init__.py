"""The repositories under watch: which there are, in what state, and what was missed of them."""
