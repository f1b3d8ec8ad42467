"""One exchange as an object, its columns, and the names of topic ids."""
