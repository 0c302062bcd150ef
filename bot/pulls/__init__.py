"""Pull requests: approval, evaluation, campaigns and check runs.

pull_lifecycle     stores events and requests as rows
approval           which commits may run, and whose configuration is in force (`bot.approval`)
pull_policy        test it, wait for approval, or skip it
pull_evaluation    reads a pull request, decides, and creates its campaign
check_run_updater  updates the check runs of running campaigns from rows
check_run_actions  the buttons of check runs
check_run_loop     the thread that calls `check_run_updater`
"""
