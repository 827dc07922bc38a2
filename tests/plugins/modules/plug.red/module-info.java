module plug.red {
    requires plug.base;

    exports red;
}
