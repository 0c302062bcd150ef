"""Pull requests: whose code may run, which campaign tests it, and what its check run says meanwhile.

pull_lifecycle     what GitHub and people say of one becomes rows
approval           whether one may run as it is, and whose configuration holds
pull_policy        test it, wait for a release, or leave it
pull_evaluation    a row is looked at: re-read, decided, and made a campaign or a word why not
check_run_updater  the check run of a campaign at work, from its rows
check_run_actions  the buttons of check runs
check_run_loop     the thread that calls `check_run_updater`
"""
