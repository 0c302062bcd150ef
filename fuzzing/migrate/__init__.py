"""Migration: the tests of libraries, turned into cases. Imports the libraries; never imported by bot."""
