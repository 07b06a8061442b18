"""The command ``hbrt``: the group that finds the verbs, and the options, exit codes and tables that verbs share."""
