"""Graded answers without coins: is what is claimed true, and what does it cost?"""
