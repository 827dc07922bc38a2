/** Answers a refused request with 503, on any servlet container or on Tomcat as a whole. */
package dev.heapwarden.examples.servlet;
