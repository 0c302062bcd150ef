"""DeepREL (Deng et al., ESEC/FSE 2022): runs the recorded inputs of an API on similar APIs."""
