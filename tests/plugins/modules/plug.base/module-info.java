module plug.base {
    exports base;
}
