"""DeepREL (Deng et al., ESEC/FSE 2022): APIs that behave alike lend each other their inputs.

apis, signatures   what torch offers, and what each API takes
similarity         for each API the ten that look most like it
mapping            which parameter of one stands for which of the other
transfer           a recorded call of one API as a call of the other
verification       run both, and see whether the pair holds
mutation           calls beside the recorded ones
search             all of it, round by round
"""
