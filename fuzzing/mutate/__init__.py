"""Mutation: cases made from other cases."""
