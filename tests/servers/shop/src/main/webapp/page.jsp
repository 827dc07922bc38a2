<%@ page contentType="text/plain" session="false" %><%!
    private static final java.util.List<byte[][]> HELD = new java.util.ArrayList<>();
%><%
    byte[][] slots = new byte[Integer.parseInt(request.getParameter("count"))][];
    for (int i = 0; i < slots.length; i++) {
        slots[i] = new byte[Integer.parseInt(request.getParameter("length"))];
    }
    synchronized (HELD) {
        HELD.add(slots);
    }
%>done
