// A source for the target that carries the precompiled headers of the tests.
