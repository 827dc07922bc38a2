module plug.blue {
    requires plug.base;

    exports blue;
}
