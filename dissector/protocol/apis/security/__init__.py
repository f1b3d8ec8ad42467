"""Authentication, access control lists, delegation tokens, SCRAM credentials."""
