<?xml version="1.0" encoding="UTF-8"?>
<!-- A drawing in SVG: a bar for each order, by day, in the colour of its country. -->
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"
                xmlns="http://www.w3.org/2000/svg">
  <xsl:output method="xml" encoding="UTF-8"/>
  <xsl:key name="customer" match="customer" use="@id"/>

  <xsl:template match="/shop">
    <svg width="{2 * count(order)}" height="400">
      <xsl:for-each select="order">
        <xsl:sort select="@day" data-type="number"/>
        <xsl:sort select="@id"/>
        <xsl:variable name="country" select="key('customer', @customer)/@country"/>
        <rect x="{2 * position()}" y="{400 - sum(line/@quantity)}" width="2" height="{sum(line/@quantity)}">
          <xsl:attribute name="class">
            <xsl:choose>
              <xsl:when test="starts-with($country, 'A') or starts-with($country, 'B')">south</xsl:when>
              <xsl:when test="contains('Canada Denmark Estonia', $country)">north</xsl:when>
              <xsl:otherwise><xsl:value-of select="substring($country, 1, 3)"/></xsl:otherwise>
            </xsl:choose>
          </xsl:attribute>
        </rect>
      </xsl:for-each>
    </svg>
  </xsl:template>
</xsl:stylesheet>
