"""Migration: the tests of libraries, converted to cases. Imports the libraries; never imported by bot."""
