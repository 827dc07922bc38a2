package com.acme.place.web;

import com.acme.place.store.Entries;
import shaded.jakarta.servlet.http.HttpServlet;

/** A request that allocates one object. */
public final class CartServlet extends HttpServlet {
    @Override
    protected void doPost() {
        Entries.make();
    }
}
