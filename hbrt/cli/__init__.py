"""The command ``hbrt``: the group that finds the verbs, options, exit codes and tables that verbs share."""
