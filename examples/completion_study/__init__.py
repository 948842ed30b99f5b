"""Example study: can language models complete idioms?"""
