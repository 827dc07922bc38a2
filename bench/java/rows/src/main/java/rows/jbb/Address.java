package rows.jbb;

/** Where somebody lives. */
record Address(String street, String city, String zip) {}
