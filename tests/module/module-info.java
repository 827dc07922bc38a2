/** A named module, for the test of what such a one sees of the errors. */
module quota.module {
    exports quota;
}
