"""The notation of options, command lines on argparse, help, completion in shells."""
