"""What is done at each command, one small file each; `bot.commands.registry` finds them."""
