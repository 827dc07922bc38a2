/** A service as a named module that requires the API. */
module guest {
    requires dev.heapwarden;

    exports guest;
}
