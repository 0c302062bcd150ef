"""Pull requests: whose code may run, which campaign tests it, and what its check run says meanwhile.

trust     whether a pull request may run as it is, and whose configuration holds
intake    what GitHub and people say of one becomes rows
looking   a row is looked at: re-read, judged, and made a campaign or a word why not
checking  the check run of a campaign at work, from its rows
pressing  the buttons of check runs
"""
