"""What a person sees: text, tree, hex."""
