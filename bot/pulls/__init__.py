"""Pull requests: whose code may run, which campaign tests it, and what its check run says meanwhile.

intake    what GitHub and people say of one becomes rows
trust     whether one may run as it is, and whose configuration holds
deciding  test it, wait for a release, or leave it
looking   a row is looked at: re-read, decided, and made a campaign or a word why not
checking  the check run of a campaign at work, from its rows
pressing  the buttons of check runs
watch     the thread that has `checking` look
"""
