<%@ page contentType="text/plain" session="false" %><%
    for (StackTraceElement frame : Thread.currentThread().getStackTrace()) {
        out.println(frame.getClassName() + "." + frame.getMethodName());
    }
%>done
