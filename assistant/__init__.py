"""
Answers for assistants: a server of the Model Context Protocol on stdin and stdout.

A tool is a command of kafkashark, run as a process of its own with time and output limited:
secrets are masked by the command. `capture_folder` confines files, `bounded_answer` bounds the
text.
"""
