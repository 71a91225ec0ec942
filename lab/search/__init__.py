"""Mode search: trials that differ in some flags. Ray places them, ASHA stops some early, Optuna proposes.

In comes an experiment with a block `search`; out go `trial.json` of each trial, a table and graphs of all.
`trial.json` and the sessions' folders are the only record: the same command resumes from them.
"""
