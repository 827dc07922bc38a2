package com.acme.sites;

/** An object that is kept: 200 bytes and a header. */
public final class Item {
    long l0, l1, l2, l3, l4, l5, l6, l7, l8, l9, l10, l11, l12;
    long l13, l14, l15, l16, l17, l18, l19, l20, l21, l22, l23, l24;
}
